// Package dashscope is a fake of Alibaba's DashScope: recognition and voices by its
// inference protocol, by its realtime protocol, and the voices that answer plain requests.
package dashscope

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// idle is how long a client may be silent within a task and between tasks. The
// service waits for 23 and 60 s.
const idle = 3 * time.Second

// early is how long the service takes to begin a task: whoever does not wait is caught.
const early = 10 * time.Millisecond

// New starts the service.
func New(tb testing.TB) *servicetest.Server {
	tb.Helper()
	f := &fake{t: tb, tasks: map[string]bool{}}
	f.Server = servicetest.New(tb, f.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel,
		servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken,
		servicetest.Huge, servicetest.Odd, servicetest.Stale, servicetest.Parts, servicetest.Late)
	return f.Server
}

// fake is the service.
type fake struct {
	*servicetest.Server
	t testing.TB

	mu    sync.Mutex
	tasks map[string]bool // that were ever begun
}

// fresh reports whether an id was never used before.
func (f *fake) fresh(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "" || f.tasks[id] {
		return false
	}
	f.tasks[id] = true
	return true
}

// serve finds the protocol of a request.
func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || key != servicetest.Key || f.Fault() == servicetest.WrongKey {
		refuse(w, http.StatusUnauthorized, "InvalidApiKey", "Invalid API-key provided.")
		return
	}
	path, model := strings.TrimSuffix(r.URL.Path, "/"), r.URL.Query().Get("model")
	switch {
	case path == "/api-ws/v1/inference":
		f.inference(w, r)
	case path == "/api-ws/v1/realtime" && strings.Contains(model, "tts"):
		f.voice(w, r)
	case path == "/api-ws/v1/realtime" && strings.Contains(model, "asr"):
		f.recognition(w, r)
	case path == "/api-ws/v1/realtime":
		refuse(w, http.StatusBadRequest, "InvalidParameter", "Required parameter(model) missing or invalid, please check the request parameters.")
	case path == "/api/v1/services/aigc/multimodal-generation/generation" && r.Method == http.MethodPost:
		f.generation(w, r)
	case path == "/sound.wav":
		sound := servicetest.Speech(r.URL.Query().Get("text"), 24000)
		_, _ = w.Write(append(servicetest.WAV(24000, uint32(len(sound))), sound...))
	default:
		refuse(w, http.StatusNotFound, "InvalidURL", "url error, please check url!")
	}
}

// refuse answers with an error as plain requests get it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": code, "message": message, "request_id": "7574ee8f-38a3-4b1e-9280-11c33ab46e51"})
}

// failure is the vendor's code and words for a fault of the account, or "".
func failure(f servicetest.Fault) (code, message string) {
	switch f {
	case servicetest.NoMoney:
		return "Arrearage", "Access denied, please make sure your account is in good standing."
	case servicetest.RateLimited:
		return "Throttling.RateQuota", "Requests rate limit exceeded, please try again later."
	case servicetest.WrongModel:
		return "ModelNotFound", "Model not exist."
	default:
		return "", ""
	}
}

// generation is the request for a voice without a socket.
func (f *fake) generation(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model string `json:"model"`
		Input struct {
			Text     string `json:"text"`
			Voice    string `json:"voice"`
			Language string `json:"language_type"`
		} `json:"input"`
	}
	body := http.MaxBytesReader(w, r.Body, 1<<20)
	err := json.NewDecoder(body).Decode(&q)
	fault := f.Fault()
	raw, _ := json.Marshal(q)
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: raw})
	code, message := failure(fault)
	switch {
	case err != nil || q.Model == "" || q.Input.Text == "" || q.Input.Voice == "":
		refuse(w, http.StatusBadRequest, "InvalidParameter", "Required input missing or invalid, please check the request parameters.")
		return
	case fault == servicetest.WrongVoice:
		refuse(w, http.StatusBadRequest, "InvalidParameter", "The input voice is not supported.")
		return
	case fault == servicetest.RateLimited:
		refuse(w, http.StatusTooManyRequests, code, message)
		return
	case code != "":
		refuse(w, http.StatusBadRequest, code, message)
		return
	}
	if r.Header.Get("X-DashScope-SSE") != "enable" {
		answer := fmt.Sprintf(`{"output":{"finish_reason":"stop","audio":{"data":"","url":"%s/sound.wav?text=a","id":"audio_1"}},"request_id":"r"}`, f.URL())
		f.Send(w, r, fault, servicetest.Reply{Type: "application/json", Body: []byte(answer), Broken: []byte(`{"output":`)})
		return
	}
	f.Send(w, r, fault, servicetest.Reply{Type: "text/event-stream", Body: events(q.Input.Text), Piece: 8192, Broken: []byte("data:{\"output\":\n\n")})
}

// events is the sound of a text as server-sent events: the first holds the header of a WAV
// file, the last the address of the whole file, and none a status code.
func events(text string) []byte {
	sound := append(servicetest.WAV(24000, 0xFFFFFFFF), servicetest.Speech(text, 24000)...)
	var out []byte
	event := func(v any) {
		b, _ := json.Marshal(v)
		out = fmt.Appendf(out, "id:1\nevent:result\n:HTTP_STATUS/200\ndata:%s\n\n", b)
	}
	for _, p := range servicetest.Pieces(sound, 4801) {
		event(map[string]any{"output": map[string]any{"finish_reason": "null", "audio": map[string]any{"data": p, "expires_at": 1, "id": "audio_1"}}, "request_id": "r"})
	}
	event(map[string]any{
		"output": map[string]any{"finish_reason": "stop", "audio": map[string]any{"data": "", "url": "http://dashscope-result.invalid/a.wav", "id": "audio_1"}},
		"usage":  map[string]any{"characters": len(text)}, "request_id": "r",
	})
	return out
}
