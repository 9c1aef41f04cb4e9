// Package elevenlabs is a fake of the speech services of ElevenLabs: recognition by
// Scribe in real time, and voices by HTTP, by WebSocket, and by WebSocket with many
// contexts.
package elevenlabs

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// Idle is how long the service waits for a message: 10 and 20 s at the real one.
const Idle = 1500 * time.Millisecond

const (
	pause   = 5 * time.Millisecond // between two pieces of sound
	longest = 5000                 // characters of a text
)

// fake is the service.
type fake struct {
	*servicetest.Server
	t     testing.TB
	ended atomic.Int32 // sessions that ended by themselves
}

// New starts the service. It takes [servicetest.Key] in the header xi-api-key.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/speech-to-text/realtime", f.hear)
	mux.HandleFunc("POST /v1/text-to-speech/{voice}", f.speak)
	mux.HandleFunc("POST /v1/text-to-speech/{voice}/stream", f.speak)
	mux.HandleFunc("/v1/text-to-speech/{voice}/stream-input", func(w http.ResponseWriter, r *http.Request) { f.converse(w, r, false) })
	mux.HandleFunc("/v1/text-to-speech/{voice}/multi-stream-input", func(w http.ResponseWriter, r *http.Request) { f.converse(w, r, true) })
	f.Server = servicetest.New(t, mux.ServeHTTP, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited,
		servicetest.WrongModel, servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed,
		servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Stale, servicetest.Ends, servicetest.Parts, servicetest.Late)
	return f.Server
}

// refusal is why the service does not do what it is asked, in its words.
type refusal struct {
	status int    // of HTTP
	kind   string // by HTTP and by the voices' WebSocket
	words  string
	scribe string // the kind of message of the recogniser
}

// The refusals.
var (
	wrongKey   = refusal{http.StatusUnauthorized, "invalid_api_key", "Invalid API key", "auth_error"}
	noMoney    = refusal{http.StatusUnauthorized, "quota_exceeded", "This request exceeds your quota. You have 0 credits remaining.", "quota_exceeded"}
	limited    = refusal{http.StatusTooManyRequests, "too_many_concurrent_requests", "Too many concurrent requests.", "rate_limited"}
	wrongModel = refusal{http.StatusBadRequest, "model_not_found", "A model with this ID does not exist.", "input_error"}
	wrongVoice = refusal{http.StatusNotFound, "voice_not_found", "A voice with this ID was not found.", "input_error"}
	badInput   = refusal{http.StatusUnprocessableEntity, "invalid_request", "Input should be valid.", "input_error"}
	tooBig     = refusal{http.StatusBadRequest, "max_character_limit_exceeded", "The text is too long.", "chunk_size_exceeded"}
)

// admit says why a key may not do something, if so.
func admit(key string, fault servicetest.Fault) *refusal {
	switch {
	case key != servicetest.Key || fault == servicetest.WrongKey:
		return &wrongKey
	case fault == servicetest.NoMoney:
		return &noMoney
	case fault == servicetest.RateLimited:
		return &limited
	case fault == servicetest.WrongModel:
		return &wrongModel
	}
	return nil
}

// models are those that speak.
var models = []string{"", "eleven_flash_v2_5", "eleven_turbo_v2_5", "eleven_multilingual_v2", "eleven_v3"}

// format reads an output format, and says whether it is one.
func format(name string) (kind string, rate int, ok bool) {
	if name == "" {
		name = "mp3_44100_128"
	}
	parts := strings.Split(name, "_")
	if len(parts) < 2 {
		return "", 0, false
	}
	rate, _ = strconv.Atoi(parts[1])
	switch parts[0] {
	case "pcm":
		return "pcm", rate, len(parts) == 2 && slices.Contains([]int{8000, 16000, 22050, 24000, 44100}, rate)
	case "mp3":
		return "mp3", rate, len(parts) == 3 && (rate == 22050 || rate == 44100)
	case "opus":
		return "opus", rate, len(parts) == 3 && rate == 48000
	}
	return "", 0, false
}

// sound is a text in a format, as it is sent.
func (f *fake) sound(name, text string) (sound []byte, piece int) {
	kind, rate, _ := format(name)
	switch kind {
	case "pcm":
		return servicetest.Speech(text, rate), rate / 5
	case "opus":
		return servicetest.OggOpus(f.t, text, 24000), 500
	}
	return servicetest.MP3(text), 500
}

// settings is the part of a request that tells how to speak.
type settings struct {
	Stability       *float64 `json:"stability"`
	SimilarityBoost *float64 `json:"similarity_boost"`
	Style           *float64 `json:"style"`
	Speed           *float64 `json:"speed"`
}

// refusal says what is wrong with the settings, if anything.
func (s *settings) refusal() *refusal {
	outside := func(v *float64, from, to float64) bool { return v != nil && (*v < from || *v > to) }
	if s != nil && (outside(s.Stability, 0, 1) || outside(s.SimilarityBoost, 0, 1) || outside(s.Style, 0, 1) || outside(s.Speed, 0.7, 1.2)) {
		return &badInput
	}
	return nil
}

// speak speaks one text by HTTP.
func (f *fake) speak(w http.ResponseWriter, r *http.Request) {
	fault := f.Fault()
	body, _ := io.ReadAll(r.Body)
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	var want struct {
		Text    string
		ModelID string    `json:"model_id"`
		Voice   *settings `json:"voice_settings"`
	}
	no := admit(r.Header.Get("xi-api-key"), fault)
	err := json.Unmarshal(body, &want)
	_, _, known := format(r.URL.Query().Get("output_format"))
	switch {
	case no != nil:
	case fault == servicetest.WrongVoice:
		no = &wrongVoice
	case err != nil || want.Text == "" || !known:
		no = &badInput
	case !slices.Contains(models, want.ModelID):
		no = &wrongModel
	case len([]rune(want.Text)) > longest:
		no = &tooBig
	default:
		no = want.Voice.refusal()
	}
	w.Header().Set("request-id", "el-0123456789")
	if no != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(no.status)
		_, _ = w.Write(servicetest.JSON(map[string]any{"detail": map[string]string{"status": no.kind, "message": no.words}}).Data)
		return
	}
	sound, piece := f.sound(r.URL.Query().Get("output_format"), want.Text)
	f.Send(w, r, fault, servicetest.Reply{Type: "audio/mpeg", Body: sound, Piece: piece, Pause: pause, Broken: []byte("<html>"), Filler: []byte("AA")})
}

// end says no on a WebSocket of the voices.
func end(l *servicetest.Line, no refusal) {
	if l.Say(servicetest.JSON(map[string]any{"message": no.words, "error": no.kind, "code": websocket.ClosePolicyViolation})) {
		l.End(websocket.ClosePolicyViolation, no.words)
	}
}
