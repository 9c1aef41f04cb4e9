// Package gptsovits is a fake of the two servers of GPT-SoVITS, api_v2.py and api.py.
package gptsovits

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

const rate = 32000

// New starts both servers: one answers at /tts, the other at /.
func New(tb testing.TB) *servicetest.Server {
	tb.Helper()
	f := &fake{t: tb}
	f.Server = servicetest.New(tb, f.serve, servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed,
		servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f.Server
}

// fake is the servers.
type fake struct {
	*servicetest.Server
	t testing.TB
}

// fail answers with an error. What failed is told to /tts as Exception.
func fail(w http.ResponseWriter, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(body)
}

// fields are the parameters of a request: of its query, or of its body.
func fields(w http.ResponseWriter, r *http.Request) map[string]any {
	out := map[string]any{}
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&out)
	}
	for name, values := range r.URL.Query() {
		out[name] = values[0]
	}
	return out
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		http.Error(w, `{"detail":"Method Not Allowed"}`, http.StatusMethodNotAllowed)
		return
	}
	q := fields(w, r)
	raw, _ := json.Marshal(q)
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: raw})
	text := func(name string) string { s, _ := q[name].(string); return s }
	switch r.URL.Path {
	case "/tts":
		f.second(w, r, text, q["streaming_mode"])
	case "/":
		if text("text") == "" || text("text_language") == "" || f.Fault() == servicetest.WrongVoice {
			fail(w, map[string]any{"code": 400, "message": "the reference or the text is missing"})
			return
		}
		sound := servicetest.Speech(text("text"), rate)
		f.send(w, r, "audio/wav", append(servicetest.WAV(rate, uint32(len(sound))), sound...))
	default:
		http.NotFound(w, r)
	}
}

// second answers as api_v2.py does.
func (f *fake) second(w http.ResponseWriter, r *http.Request, text func(string) string, streaming any) {
	for _, name := range []string{"text", "text_lang", "ref_audio_path", "prompt_lang"} {
		if text(name) == "" {
			fail(w, map[string]any{"message": name + " is required"})
			return
		}
	}
	format := text("media_type")
	if format == "" {
		format = "wav"
	}
	switch {
	case !slices.Contains([]string{"wav", "raw", "ogg", "aac"}, format):
		fail(w, map[string]any{"message": "media_type: " + format + " is not supported"})
		return
	case f.Fault() == servicetest.WrongVoice:
		fail(w, map[string]any{"message": "tts failed", "Exception": "[Errno 2] No such file or directory: " + strconv.Quote(text("ref_audio_path"))})
		return
	}
	sound := servicetest.Speech(text("text"), rate)
	size := uint32(len(sound))
	switch s := streaming.(type) { // with sizes of 0 while it streams
	case bool:
		size *= 1 - one(s)
	case float64:
		size *= 1 - one(s > 0)
	}
	switch format {
	case "wav":
		f.send(w, r, "audio/wav", append(servicetest.WAV(rate, size), sound...))
	case "ogg": // Vorbis: its head alone, for nobody here reads it
		page := append([]byte("OggS\x00\x02"), make([]byte, 20)...)
		f.send(w, r, "audio/ogg", append(append(page, 1, 30), append([]byte("\x01vorbis"), make([]byte, 23)...)...))
	default:
		f.send(w, r, "audio/"+format, sound)
	}
}

func one(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}

// send sends sound sentence by sentence. A broken server is a proxy with a page of its own.
func (f *fake) send(w http.ResponseWriter, r *http.Request, kind string, sound []byte) {
	reply := servicetest.Reply{Type: kind, Body: sound, Piece: 7777, Pause: time.Millisecond}
	if f.Fault() == servicetest.Broken {
		reply.Status, reply.Type, reply.Broken = http.StatusBadGateway, "text/html", []byte("<html><body>502 Bad Gateway</body></html>")
	}
	f.Send(w, r, f.Fault(), reply)
}
