// Package whispercpp is a fake of the HTTP server of whisper.cpp.
package whispercpp

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/servicetest"
)

// Path is where the server listens unless it is started with another one.
const Path = "/inference"

// fake is one server with one model, which hears one clip at a time.
type fake struct {
	*servicetest.Server
	model sync.Mutex
}

// New starts a server that answers at [Path], with /health and /load. It wants no key.
//
// Silence is heard as " [BLANK_AUDIO]\n", as models do, unless the request has
// suppress_nst. Speech is a segment with a blank before it and a newline after it; with
// [servicetest.Parts] there are two.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, f.infer)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, "application/json", `{"status":"ok"}`)
	})
	mux.HandleFunc("POST /load", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("model") == "" {
			refuse(w, http.StatusBadRequest, "no 'model' field in the request")
			return
		}
		say(w, http.StatusOK, "application/text", "Load was successful!")
	})
	f.Server = servicetest.New(t, mux.ServeHTTP, servicetest.RateLimited, servicetest.Slow, servicetest.Silent, servicetest.Cut,
		servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Parts)
	return f.Server
}

func say(w http.ResponseWriter, status int, kind, body string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// refuse answers with the server's kind of error, whose error is a text.
func refuse(w http.ResponseWriter, status int, words string) {
	body, _ := json.Marshal(map[string]string{"error": words})
	say(w, status, "application/json", string(body))
}

// infer hears a clip. A server that is busy with loading its model answers 503: that is
// what it has instead of a limit of requests.
func (f *fake) infer(w http.ResponseWriter, r *http.Request) {
	fault := f.Fault()
	if err := r.ParseMultipartForm(32 << 20); err != nil {
		refuse(w, http.StatusBadRequest, "no 'file' field in the request")
		return
	}
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: []byte(r.Form.Encode())})
	f.model.Lock()
	defer f.model.Unlock()
	if fault == servicetest.RateLimited {
		refuse(w, http.StatusServiceUnavailable, "loading model")
		return
	}
	file, _, err := r.FormFile("file")
	if err != nil {
		refuse(w, http.StatusBadRequest, "no 'file' field in the request")
		return
	}
	sound, _ := io.ReadAll(file)
	pcm, _, ok := servicetest.ReadWAV(sound)
	if !ok {
		refuse(w, http.StatusBadRequest, "failed to read audio data")
		return
	}
	kind, body := answer(r, segments(r, pcm, fault), len(pcm))
	f.Send(w, r, fault, servicetest.Reply{Type: kind, Body: []byte(body), Broken: []byte(`{"text":" ` + "\xe4\xbb"), Filler: []byte(" and the lamp")})
}

// segments lists the segments of the answer, each as it stands there.
func segments(r *http.Request, pcm []byte, fault servicetest.Fault) []string {
	quiet := r.FormValue("suppress_nst") == "true" || r.FormValue("suppress_non_speech") == "true"
	switch first, second := servicetest.Halves(); {
	case !servicetest.Loud(pcm) && (quiet || len(pcm) == 0):
		return nil
	case !servicetest.Loud(pcm):
		return []string{" [BLANK_AUDIO]"}
	case fault == servicetest.Parts:
		return []string{" " + first, " " + second}
	}
	return []string{" " + servicetest.Words}
}

// answer is the body that response_format asks for.
func answer(r *http.Request, segments []string, bytes int) (kind, body string) {
	text := strings.Join(append(segments, ""), "\n")
	list := make([]map[string]any, 0, len(segments))
	for i, s := range segments {
		list = append(list, map[string]any{"id": i, "text": s, "no_speech_prob": 0.01, "avg_logprob": -0.2, "tokens": []int{50364}})
	}
	switch r.FormValue("response_format") {
	case "text":
		return "text/html; charset=utf-8", text
	case "verbose_json":
		verbose := map[string]any{"task": "transcribe", "language": "chinese", "duration": float64(bytes) / 32000, "text": text, "segments": list}
		if !strings.EqualFold(r.FormValue("no_language_probabilities"), "true") {
			verbose["detected_language"], verbose["detected_language_probability"] = "chinese", 0.9
		}
		b, _ := json.Marshal(verbose)
		return "application/json", string(b)
	}
	b, _ := json.Marshal(map[string]string{"text": text})
	return "application/json", string(b)
}
