// Package cosyvoice is a fake of the server of CosyVoice that people run at home.
package cosyvoice

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Rate is that of the sound of CosyVoice 1 in Hz; it is said nowhere.
const Rate = 22050

// New starts the server.
func New(tb testing.TB) *servicetest.Server {
	tb.Helper()
	f := &fake{}
	f.Server = servicetest.New(tb, f.serve, servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed,
		servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f.Server
}

// fake is the server.
type fake struct{ *servicetest.Server }

// routes are the fields of a form that each way of speaking needs.
func routes(path string) ([]string, bool) {
	fields, ok := map[string][]string{
		"/inference_sft":           {"tts_text", "spk_id"},
		"/inference_zero_shot":     {"tts_text", "prompt_text", "prompt_wav"},
		"/inference_cross_lingual": {"tts_text", "prompt_wav"},
		"/inference_instruct":      {"tts_text", "spk_id", "instruct_text"},
		"/inference_instruct2":     {"tts_text", "instruct_text", "prompt_wav"},
	}[path]
	return fields, ok
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	fields, ok := routes(r.URL.Path)
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 16<<20)
	_ = r.ParseMultipartForm(16 << 20) // a form in the body or in the query will do too
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: []byte(r.Form.Encode())})
	for _, name := range fields {
		file := false
		if r.MultipartForm != nil {
			file = len(r.MultipartForm.File[name]) > 0
		}
		if !file && (name == "prompt_wav" || r.Form.Get(name) == "") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(map[string]any{"detail": []any{map[string]any{"type": "missing", "loc": []string{"body", name}, "msg": "Field required", "input": nil}}})
			return
		}
	}
	if f.Fault() == servicetest.WrongVoice {
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return
	}
	reply := servicetest.Reply{Type: "application/octet-stream", Body: servicetest.Speech(r.Form.Get("tts_text"), Rate), Piece: 3333, Pause: time.Millisecond}
	if f.Fault() == servicetest.Broken {
		reply.Type, reply.Broken = "text/html", []byte("<html>not what you want</html>")
	}
	f.Send(w, r, f.Fault(), reply)
}
