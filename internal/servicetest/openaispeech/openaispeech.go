// Package openaispeech is a fake of the speech of OpenAI, and of the services that speak
// its wire with quirks of their own: SiliconFlow, Zhipu, Kokoro-FastAPI and speaches.
package openaispeech

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

// vendor holds the models and voices of one service and the way in which it refuses.
type vendor struct {
	*servicetest.Server
	t      testing.TB
	refuse refusal

	hears     []string // models that recognise
	speaks    []string // models that speak
	voice     func(model, voice string) bool
	formats   []string         // of speech, the default first
	rate      int              // Hz of pcm and wav
	rated     bool             // sample_rate is taken
	rates     map[string][]int // those of each format; nil: any
	maxInput  int              // characters; 0: no limit
	sizes     uint32           // written in the header of a WAV file
	sentences bool             // a file of sound comes sentence by sentence, with pauses
}

// refusal answers a request that is refused. Its reason is a fault, or None for a
// parameter that is wrong, which words explain.
type refusal func(w http.ResponseWriter, reason servicetest.Fault, words string)

// faults are those that all of them can have.
var faults = []servicetest.Fault{
	servicetest.WrongModel, servicetest.WrongVoice, servicetest.Slow, servicetest.Silent, servicetest.Cut,
	servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd,
}

var paid = []servicetest.Fault{servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited}

// bareRates are those of SiliconFlow's pcm and wav.
var bareRates = []int{8000, 16000, 24000, 32000, 44100}

// New starts OpenAI's own service: /v1/audio/transcriptions, /v1/audio/speech and
// /v1/realtime?intent=transcription, which speaks the old (beta) wire to those who send
// the header OpenAI-Beta: realtime=v1. Speech is pcm (24 kHz), wav, mp3 or opus.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	v := &vendor{
		refuse: openai,
		hears:  []string{"gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-transcribe", "whisper-1"},
		speaks: []string{"tts-1", "tts-1-hd", "gpt-4o-mini-tts"},
		voice: func(_, voice string) bool {
			return slices.Contains(strings.Fields("alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar"), voice)
		},
		formats: []string{"mp3", "opus", "wav", "pcm"}, rate: 24000, maxInput: 4096, sizes: 0xffffffff,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/transcriptions", v.keyed(v.transcribe))
	mux.HandleFunc("POST /v1/audio/speech", v.keyed(v.speak))
	mux.HandleFunc("GET /v1/realtime", v.keyed(func(w http.ResponseWriter, r *http.Request) { v.realtime(w, r, openaiRealtime(r)) }))
	return v.start(t, mux, append(paid, servicetest.Stale, servicetest.Late)...)
}

// NewSiliconFlow starts SiliconFlow's service: /v1/audio/transcriptions and
// /v1/audio/speech, whose rate can be set and is 44.1 kHz otherwise.
func NewSiliconFlow(t testing.TB) *servicetest.Server {
	t.Helper()
	v := &vendor{
		refuse:  siliconflow,
		hears:   []string{"FunAudioLLM/SenseVoiceSmall"},
		speaks:  []string{"FunAudioLLM/CosyVoice2-0.5B"},
		voice:   func(model, voice string) bool { return strings.HasPrefix(voice, model+":") },
		formats: []string{"mp3", "opus", "wav", "pcm"}, rate: 44100, rated: true,
		rates: map[string][]int{"pcm": bareRates, "wav": bareRates, "mp3": {32000, 44100}, "opus": {48000}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/transcriptions", v.keyed(v.transcribe))
	mux.HandleFunc("POST /v1/audio/speech", v.keyed(v.speak))
	return v.start(t, mux, paid...)
}

// NewZhipu starts Zhipu's service: /api/paas/v4/audio/speech with the model glm-tts,
// which streams lines of events longer than 64 KiB, each with a piece of pcm.
func NewZhipu(t testing.TB) *servicetest.Server {
	t.Helper()
	v := &vendor{
		refuse: zhipu, speaks: []string{"glm-tts"}, formats: []string{"wav", "pcm"}, rate: 24000, maxInput: 1024,
		voice: func(_, voice string) bool {
			return slices.Contains(strings.Fields("tongtong chuichui xiaochen jam kazi douji luodo"), voice)
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/paas/v4/audio/speech", v.keyed(v.speakEvents))
	return v.start(t, mux, paid...)
}

// NewKokoro starts Kokoro-FastAPI, which wants no key: /v1/audio/speech sends sentence
// by sentence, /v1/audio/voices names the voices, /v1/models the models.
func NewKokoro(t testing.TB) *servicetest.Server {
	t.Helper()
	v := &vendor{
		refuse: kokoro, speaks: []string{"kokoro", "tts-1", "tts-1-hd"}, voice: mixed,
		formats: []string{"mp3", "opus", "wav", "pcm"}, rate: 24000, sizes: 0xffffffff, sentences: true,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/speech", v.speak)
	mux.HandleFunc("GET /v1/audio/voices", list(`{"voices":["af_heart","af_bella","af_sky","zf_xiaoxiao","zm_yunxi"]}`))
	mux.HandleFunc("GET /v1/models", list(`{"object":"list","data":[{"id":"kokoro","object":"model"}]}`))
	return v.start(t, mux)
}

// NewSpeaches starts speaches: /v1/audio/transcriptions, which streams a result for each
// segment, /v1/audio/speech, and /v1/realtime in the old wire with a detector of voice
// that cannot be switched off. A key that is wrong is answered with 403, and with the
// close code 1008 on the socket; no key is right too.
func NewSpeaches(t testing.TB) *servicetest.Server {
	t.Helper()
	v := &vendor{
		refuse: speaches, hears: []string{"Systran/faster-whisper-small"}, speaks: []string{"speaches-ai/Kokoro-82M-v1.0-ONNX"}, voice: mixed,
		formats: []string{"mp3", "wav", "pcm"}, rate: 24000, rated: true, sizes: 0xffffffff,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/transcriptions", v.keyed(v.transcribe))
	mux.HandleFunc("POST /v1/audio/speech", v.keyed(v.speak))
	mux.HandleFunc("GET /v1/models", v.keyed(list(`{"object":"list","data":[{"id":"Systran/faster-whisper-small","task":"automatic-speech-recognition"}]}`)))
	mux.HandleFunc("GET /v1/realtime", func(w http.ResponseWriter, r *http.Request) { v.realtime(w, r, speachesRealtime(r)) })
	return v.start(t, mux, servicetest.WrongKey, servicetest.Parts)
}

// mixed says whether a voice of Kokoro exists: a letter for the language, one for the
// sex, a name; several are mixed with +, each with a weight in brackets.
func mixed(_, voice string) bool {
	for part := range strings.SplitSeq(voice, "+") {
		name, _, _ := strings.Cut(part, "(")
		if len(name) < 4 || !strings.ContainsRune("abefhijpz", rune(name[0])) || !strings.ContainsRune("fm", rune(name[1])) || name[2] != '_' || strings.Contains(name, "nobody") {
			return false
		}
	}
	return true
}

func list(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, body)
	}
}

func (v *vendor) start(t testing.TB, mux *http.ServeMux, more ...servicetest.Fault) *servicetest.Server {
	t.Helper()
	v.t = t
	v.Server = servicetest.New(t, mux.ServeHTTP, append(slices.Clone(more), faults...)...)
	return v.Server
}

// keyed wants the key, and refuses what has nothing to do with what is asked.
func (v *vendor) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f := v.Fault()
		auth := r.Header.Get("Authorization")
		wrong := auth != "Bearer "+servicetest.Key
		if !v.Knows(servicetest.NoMoney) && auth == "" {
			wrong = false // a household's own server
		}
		switch {
		case wrong || f == servicetest.WrongKey:
			v.refuse(w, servicetest.WrongKey, "")
		case f == servicetest.NoMoney || f == servicetest.RateLimited:
			v.refuse(w, f, "")
		default:
			next(w, r)
		}
	}
}

// send answers with JSON.
func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// coded is the answer to one reason.
type coded struct {
	status      int
	code, words string
}

// because picks the answer to a reason; those to a wrong parameter get the words.
func because(answers map[servicetest.Fault]coded, reason servicetest.Fault, words string) coded {
	c := answers[reason]
	if words != "" {
		c.words = words
	}
	return c
}

func openai(w http.ResponseWriter, reason servicetest.Fault, words string) {
	c := because(map[servicetest.Fault]coded{
		servicetest.WrongKey:    {401, "invalid_api_key", "Incorrect API key provided: sk-wr***ey. You can find your API key at https://platform.openai.com/account/api-keys."},
		servicetest.NoMoney:     {429, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."},
		servicetest.RateLimited: {429, "rate_limit_exceeded", "Rate limit reached for requests. Please try again in 1s."},
		servicetest.WrongModel:  {404, "model_not_found", "The model does not exist or you do not have access to it."},
		servicetest.WrongVoice:  {400, "invalid_value", "Invalid value for 'voice'."},
		servicetest.None:        {400, "invalid_value", ""},
	}, reason, words)
	w.Header().Set("X-Request-Id", "req_0123456789")
	if reason == servicetest.RateLimited {
		w.Header().Set("Retry-After", "1")
	}
	send(w, c.status, map[string]any{"error": map[string]any{"message": c.words, "type": "invalid_request_error", "param": nil, "code": c.code}})
}

func siliconflow(w http.ResponseWriter, reason servicetest.Fault, words string) {
	if reason == servicetest.WrongKey {
		send(w, http.StatusUnauthorized, "Invalid token")
		return
	}
	c := because(map[servicetest.Fault]coded{
		servicetest.NoMoney:     {403, "30001", "Sorry, your account balance is insufficient"},
		servicetest.RateLimited: {429, "50603", "Request was rejected due to rate limiting."},
		servicetest.WrongModel:  {400, "20012", "Model does not exist. Please check it carefully."},
		servicetest.WrongVoice:  {400, "20047", "Invalid voice"},
		servicetest.None:        {400, "20015", ""},
	}, reason, words)
	send(w, c.status, map[string]any{"code": json.Number(c.code), "message": c.words, "data": nil})
}

func zhipu(w http.ResponseWriter, reason servicetest.Fault, words string) {
	c := because(map[servicetest.Fault]coded{
		servicetest.WrongKey:    {401, "1000", "Authentication failed"},
		servicetest.NoMoney:     {429, "1113", "Your account is in arrears, please recharge and try again"},
		servicetest.RateLimited: {429, "1302", "Your API request concurrency is too high"},
		servicetest.WrongModel:  {400, "1211", "The model does not exist, please check the model code"},
		servicetest.WrongVoice:  {400, "1214", "voice: invalid parameter"},
		servicetest.None:        {400, "1214", ""},
	}, reason, words)
	send(w, c.status, map[string]any{"error": map[string]any{"code": c.code, "message": c.words}})
}

func kokoro(w http.ResponseWriter, reason servicetest.Fault, words string) {
	c := because(map[servicetest.Fault]coded{
		servicetest.WrongModel: {400, "invalid_model", "Unsupported model"},
		servicetest.WrongVoice: {400, "validation_error", "Voice not found. Available voices: af_heart, af_bella, af_sky"},
		servicetest.None:       {400, "validation_error", ""},
	}, reason, words)
	send(w, c.status, map[string]any{"detail": map[string]any{"error": c.code, "message": c.words, "type": "invalid_request_error"}})
}

func speaches(w http.ResponseWriter, reason servicetest.Fault, words string) {
	c := because(map[servicetest.Fault]coded{
		servicetest.WrongKey:   {403, "", "Not authenticated"},
		servicetest.WrongModel: {404, "", "Model 'x' is not installed locally. You can download the model using `POST /v1/models`"},
		servicetest.WrongVoice: {422, "", "Voice is not supported"},
		servicetest.None:       {422, "", ""},
	}, reason, words)
	send(w, c.status, map[string]any{"detail": c.words})
}
