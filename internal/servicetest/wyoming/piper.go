package wyoming

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"xiaozhi/internal/servicetest"
)

// NewPiper starts the HTTP server of Piper. It wants no key.
func NewPiper(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /synthesize", f.synthesize)
	mux.HandleFunc("GET /voices", func(w http.ResponseWriter, r *http.Request) {
		f.answer(w, r, http.StatusOK, map[string]any{Voice: map[string]any{"language": map[string]string{"code": Language}}})
	})
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, r *http.Request) {
		f.answer(w, r, http.StatusOK, map[string]any{"voice": Voice, "sample_rate": rate})
	})
	f.Server = servicetest.New(t, mux.ServeHTTP, faults()...)
	return f.Server
}

// answer answers in JSON.
func (f *fake) answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	f.Send(w, r, f.Fault(), servicetest.Reply{Status: status, Type: "application/json", Body: servicetest.JSON(v).Data, Broken: []byte(`{"`)})
}

// synthesize speaks a text as one WAV file.
func (f *fake) synthesize(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, most))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	var want struct {
		Text, Voice string
	}
	fault := f.Fault()
	switch err := json.Unmarshal(body, &want); {
	case err != nil || want.Text == "":
		http.Error(w, "no text provided", http.StatusInternalServerError)
	case fault == servicetest.WrongVoice || want.Voice != "" && want.Voice != Voice:
		http.Error(w, "voice not found: "+want.Voice, http.StatusInternalServerError)
	default:
		sound := servicetest.Speech(want.Text, rate)
		f.Send(w, r, fault, servicetest.Reply{
			Type: "audio/wav", Body: append(servicetest.WAV(rate, uint32(len(sound))), sound...), Broken: []byte("<html>no sound"), Filler: []byte("AA"),
		})
	}
}
