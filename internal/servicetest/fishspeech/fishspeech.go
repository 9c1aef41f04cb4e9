// Package fishspeech is a fake of the server of Fish-speech that people run at home, and
// of the plain requests of Fish Audio.
package fishspeech

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

const rate = 44100

// New starts a server that wants a key.
func New(tb testing.TB) *servicetest.Server {
	tb.Helper()
	f := &fake{t: tb}
	f.Server = servicetest.New(tb, f.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongVoice,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f.Server
}

// fake is the server.
type fake struct {
	*servicetest.Server
	t testing.TB
}

// request holds the members of a request that the fake looks at.
type request struct {
	Text      string   `json:"text"`
	Format    string   `json:"format"`
	Streaming bool     `json:"streaming"`
	Chunk     *int     `json:"chunk_length"`
	Rate      int      `json:"sample_rate"`
	Reference string   `json:"reference_id"`
	Cache     string   `json:"use_memory_cache"`
	Tokens    *int     `json:"max_new_tokens"`
	TopP      *float64 `json:"top_p"`
}

func fail(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "message": words})
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	fault := f.Fault()
	if r.URL.Path == "/v1/health" {
		_, _ = w.Write([]byte(`{"status":"ok"}`))
		return
	}
	if r.URL.Path != "/v1/tts" || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	var q request
	body := http.MaxBytesReader(w, r.Body, 16<<20)
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	err := error(nil)
	switch kind {
	case "application/json":
		err = json.NewDecoder(body).Decode(&q)
	case "application/msgpack":
		q, err = unpack(body)
	}
	raw, _ := json.Marshal(q)
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: raw})
	if q.Format == "" {
		q.Format = "wav"
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || fault == servicetest.WrongKey:
		fail(w, http.StatusUnauthorized, "Invalid token")
	case kind != "application/json" && kind != "application/msgpack":
		fail(w, http.StatusUnsupportedMediaType, "Unsupported media type")
	case fault == servicetest.NoMoney:
		fail(w, http.StatusPaymentRequired, "API token's balance is not enough")
	case fault == servicetest.RateLimited:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, "Too many requests")
	case fault == servicetest.WrongVoice:
		fail(w, http.StatusBadRequest, "Reference not found")
	case err != nil || q.Text == "" || !slices.Contains([]string{"wav", "pcm", "mp3", "opus"}, q.Format) || q.Chunk != nil && (*q.Chunk < 100 || *q.Chunk > 1000):
		fail(w, http.StatusUnprocessableEntity, "Validation error")
	case len(q.Text) > 8000:
		fail(w, http.StatusBadRequest, "Text is too long")
	case q.Streaming && q.Format != "wav":
		fail(w, http.StatusBadRequest, "Streaming only supports WAV format")
	default:
		f.Send(w, r, fault, servicetest.Reply{Type: "audio/" + q.Format, Body: f.sound(q), Piece: 8191, Broken: []byte("<html>nothing of that kind</html>")})
	}
}

// sound is the text as it was asked for. A file that is streamed does not say how long it is.
func (f *fake) sound(q request) []byte {
	if q.Rate == 0 {
		q.Rate = rate
	}
	pcm := servicetest.Speech(q.Text, q.Rate)
	switch q.Format {
	case "mp3":
		return servicetest.MP3(q.Text)
	case "opus":
		return servicetest.OggOpus(f.t, q.Text, 24000)
	case "pcm":
		return pcm
	}
	size := uint32(len(pcm))
	if q.Streaming {
		size = 0
	}
	return append(servicetest.WAV(q.Rate, size), pcm...)
}
