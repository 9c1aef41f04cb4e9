// Package indextts is a fake of index-tts-vllm, as it is and as people patch it.
package indextts

import (
	"encoding/json"
	"net/http"
	"testing"

	"xiaozhi/internal/servicetest"
)

const rate = 24000

// New starts the server as it is: it answers with WAV files.
func New(tb testing.TB) *servicetest.Server { return serve(tb, false) }

// Patched starts one that answers with samples alone.
func Patched(tb testing.TB) *servicetest.Server { return serve(tb, true) }

func serve(tb testing.TB, bare bool) *servicetest.Server {
	tb.Helper()
	f := &fake{bare: bare}
	f.Server = servicetest.New(tb, f.serve, servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed,
		servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f.Server
}

// fake is the server.
type fake struct {
	*servicetest.Server
	bare bool
}

func fail(w http.ResponseWriter, words string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "error", "error": words})
}

// missing is what the server says of a voice that it does not know.
const missing = "Traceback (most recent call last):\n  File \"/app/api_server.py\", line 81, in tts_api\n    sr, wav = await tts.infer_with_ref_audio_embed(character, text)\nKeyError: 'nobody'\n"

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Text      string   `json:"text"`
		Character string   `json:"character"`
		Paths     []string `json:"audio_paths"`
		Speaker   string   `json:"spk_audio_path"`
		Input     string   `json:"input"`
		Voice     string   `json:"voice"`
	}
	switch r.URL.Path {
	case "/health":
		_, _ = w.Write([]byte(`{"status":"healthy"}`))
		return
	case "/audio/voices":
		_, _ = w.Write([]byte(`{"jay_klee":["assets/jay_promptvn.wav"],"lei_jun":["assets/lei.wav"]}`))
		return
	case "/tts", "/tts_url", "/audio/speech":
	default:
		http.NotFound(w, r)
		return
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q)
	raw, _ := json.Marshal(q)
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: raw})
	text, voice := q.Text, q.Character
	switch r.URL.Path {
	case "/tts_url":
		if voice = q.Speaker; len(q.Paths) > 0 {
			voice = q.Paths[0]
		}
	case "/audio/speech":
		text, voice = q.Input, q.Voice
	}
	if err != nil || text == "" || voice == "" || f.Fault() == servicetest.WrongVoice {
		fail(w, missing)
		return
	}
	sound, kind := servicetest.Speech(text, rate), "application/octet-stream"
	if !f.bare {
		sound, kind = append(servicetest.WAV(rate, uint32(len(sound))), sound...), "audio/wav"
	}
	reply := servicetest.Reply{Type: kind, Body: sound}
	if f.Fault() == servicetest.Broken {
		reply.Type, reply.Broken = "text/html", []byte("<html>not what you want</html>")
	}
	f.Send(w, r, f.Fault(), reply)
}
