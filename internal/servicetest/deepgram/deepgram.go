// Package deepgram is a fake of Deepgram: recognition by nova and by flux, and the Aura voices.
package deepgram

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// idle is how long a client may send neither sound nor a sign of life. The service
// waits for 10 s.
const idle = 3 * time.Second

const request = "0f1c3f4e-8a2b-4f0a-9d0e-000000000001" // the id of every request

// New starts the service.
func New(tb testing.TB) *servicetest.Server {
	tb.Helper()
	f := &fake{t: tb}
	f.Server = servicetest.New(tb, f.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel,
		servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken,
		servicetest.Huge, servicetest.Odd, servicetest.Parts, servicetest.Late)
	return f.Server
}

// fake is the service.
type fake struct {
	*servicetest.Server
	t testing.TB
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, code, message string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("dg-error", message)
	h.Set("dg-request-id", request)
	if status == http.StatusTooManyRequests {
		h.Set("Retry-After", "2")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"err_code": code, "err_msg": message, "request_id": request})
}

// refused answers what the account or the query do not allow.
func (f *fake) refused(w http.ResponseWriter, r *http.Request) bool {
	q := r.URL.Query()
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	fault, speaks := f.Fault(), r.URL.Path == "/v1/speak"
	switch {
	case scheme != "Token" && scheme != "Bearer" || key != servicetest.Key || fault == servicetest.WrongKey:
		refuse(w, http.StatusUnauthorized, "INVALID_AUTH", "Invalid credentials.")
	case fault == servicetest.NoMoney:
		refuse(w, http.StatusPaymentRequired, "ASR_PAYMENT_REQUIRED", "Project does not have enough credits for an ASR request and does not have an overage agreement.")
	case fault == servicetest.RateLimited:
		refuse(w, http.StatusTooManyRequests, "TOO_MANY_REQUESTS", "Too many requests. Please try again later.")
	case fault == servicetest.WrongModel, fault == servicetest.WrongVoice && speaks, q.Get("model") == "":
		refuse(w, http.StatusBadRequest, "Bad Request", "Bad Request: No such model/language/tier combination found.")
	case speaks && !strings.HasPrefix(q.Get("model"), "aura-"), r.URL.Path == "/v2/listen" && !strings.HasPrefix(q.Get("model"), "flux-general-"),
		r.URL.Path == "/v1/listen" && strings.HasPrefix(q.Get("model"), "flux-"):
		refuse(w, http.StatusBadRequest, "Bad Request", "Bad Request: this model is not served here.")
	case !speaks && (q.Get("encoding") != "linear16" || number(q.Get("sample_rate")) <= 0):
		refuse(w, http.StatusBadRequest, "Bad Request", "Bad Request: encoding and sample_rate are required for raw audio.")
	case r.URL.Path == "/v2/listen" && !flux(q.Get):
		refuse(w, http.StatusBadRequest, "INVALID_QUERY_PARAMETER", "Invalid query parameter.")
	default:
		return false
	}
	return true
}

// flux checks the thresholds of the end of a turn.
func flux(get func(string) string) bool {
	end, eager := 0.7, 0.0
	if v := get("eot_threshold"); v != "" {
		end = number(v)
	}
	if v := get("eager_eot_threshold"); v != "" {
		if eager = number(v); eager < 0.3 {
			return false
		}
	}
	return end >= 0.5 && end <= 0.9 && eager <= end
}

func number(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return -1
	}
	return n
}

// serve finds the protocol of a request.
func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	upgrade := strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	switch {
	case !slices.Contains([]string{"/v1/listen", "/v2/listen", "/v1/speak"}, r.URL.Path), !upgrade && r.URL.Path != "/v1/speak":
		http.NotFound(w, r)
	case f.refused(w, r):
	case r.URL.Path == "/v1/listen":
		f.nova(w, r)
	case r.URL.Path == "/v2/listen":
		f.flux(w, r)
	case upgrade:
		f.speaker(w, r)
	default:
		f.speak(w, r)
	}
}

// sound is a text as the query wants it; false: it wants what there is not.
func (f *fake) sound(r *http.Request, text string) ([]byte, bool) {
	q := r.URL.Query()
	rate := int(number(q.Get("sample_rate")))
	switch q.Get("encoding") {
	case "linear16":
		if rate < 0 {
			rate = 24000
		}
		pcm := servicetest.Speech(text, max(rate, 1))
		if c := q.Get("container"); c != "none" && r.Method == http.MethodPost {
			pcm = append(servicetest.WAV(rate, uint32(len(pcm))), pcm...)
		}
		return pcm, slices.Contains([]int{8000, 16000, 24000, 32000, 48000}, rate)
	case "", "mp3":
		return servicetest.MP3(text), rate < 0
	case "opus":
		return servicetest.OggOpus(f.t, text, 24000), rate < 0 || rate == 48000
	default:
		return nil, false
	}
}

// speak answers a plain request for the sound of a text.
func (f *fake) speak(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Text string `json:"text"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q)
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: []byte(q.Text)})
	sound, ok := f.sound(r, q.Text)
	switch {
	case err != nil || q.Text == "":
		refuse(w, http.StatusBadRequest, "EMPTY_TEXT", "Text is missing or empty.")
	case len([]rune(q.Text)) > 2000:
		refuse(w, http.StatusRequestEntityTooLarge, "Payload Too Large", "Input text exceeds maximum character limit of 2000.")
	case !ok:
		refuse(w, http.StatusBadRequest, "UNSUPPORTED_AUDIO_FORMAT", "Unsupported audio format.")
	default:
		kind := map[string]string{"linear16": "audio/l16", "opus": "audio/ogg"}[r.URL.Query().Get("encoding")]
		f.Send(w, r, f.Fault(), servicetest.Reply{Type: cmp.Or(kind, "audio/mpeg"), Body: sound, Piece: 4801, Broken: []byte("<html>bad gateway</html>")})
	}
}
