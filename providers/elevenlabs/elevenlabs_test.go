package elevenlabs

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/elevenlabs"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestErrorsOfRecognition(t *testing.T) {
	for code, want := range map[string]providers.Kind{
		"auth_error": providers.Unauthorized, "quota_exceeded": providers.NoCredit, "commit_throttled": providers.RateLimited,
		"unaccepted_terms_error": providers.Unauthorized, "rate_limited": providers.RateLimited, "queue_overflow": providers.Unavailable,
		"resource_exhausted": providers.Unavailable, "session_time_limit_exceeded": providers.Unavailable, "input_error": providers.BadRequest,
		"chunk_size_exceeded": providers.BadRequest, "transcriber_error": providers.Unavailable, "some_new_error": providers.Unavailable,
	} {
		_, err := parse([]byte(`{"message_type":"` + code + `","error":"words of it"}`))
		if r, ok := errors.AsType[*transport.Refusal](err); !ok || r.Kind != want || r.Code != code || r.Text != "words of it" {
			t.Errorf("%s: error %v, want %v", code, err, want)
		}
	}
	if m, err := parse([]byte(`{"message_type":"insufficient_audio_activity","error":"nothing"}`)); err != nil || m.Type != silence {
		t.Errorf("silence: %+v, error %v", m, err)
	}
	if _, err := parse([]byte(`{"message_type":`)); err == nil {
		t.Error("broken JSON: no error")
	}
}

func TestRefusalsAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		r    transport.Refusal
		want providers.Kind
		text string
	}{
		"quota":   {transport.Refusal{Status: 401, Kind: providers.Unauthorized, Text: `{"detail":{"status":"quota_exceeded","message":"no credits"}}`}, providers.NoCredit, "no credits"},
		"busy":    {transport.Refusal{Status: 429, Kind: providers.RateLimited, Text: `{"detail":{"status":"system_busy","message":"busy"}}`}, providers.Unavailable, "busy"},
		"voice":   {transport.Refusal{Status: 404, Kind: providers.BadRequest, Text: `{"detail":{"status":"voice_not_found","message":"no"}}`}, providers.BadRequest, "no"},
		"a close": {transport.Refusal{Kind: providers.Unauthorized, Code: "close 1008", Text: "quota_exceeded"}, providers.NoCredit, "quota_exceeded"},
		"unknown": {transport.Refusal{Status: 500, Kind: providers.Unavailable, Text: "oops"}, providers.Unavailable, "oops"},
	} {
		if judge(&test.r); test.r.Kind != test.want || test.r.Text != test.text {
			t.Errorf("%s: %v %q, want %v", name, test.r.Kind, test.r.Text, test.want)
		}
	}
}

func TestVoiceByPlainRequests(t *testing.T) {
	s := fake.New(t)
	v, err := NewTTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL(), Speed: 1.1, Settings: map[string]any{"wire": "http", "stability": 0.4}})
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello there", Language: "zh-TW"}) {
		if err != nil || sound.Rate != 24000 {
			t.Fatalf("%d Hz, error %v", sound.Rate, err)
		}
		samples += len(sound.PCM)
	}
	asked := s.Requests()[0]
	var got struct {
		Model    string         `json:"model_id"`
		Language string         `json:"language_code"`
		Voice    map[string]any `json:"voice_settings"`
	}
	if err := json.Unmarshal(asked.Body, &got); err != nil || samples == 0 || got.Model != voiceModel || got.Language != "zh" || got.Voice["speed"] != 1.1 || got.Voice["stability"] != 0.4 {
		t.Errorf("%d samples of %+v, error %v", samples, got, err)
	}
	if !strings.Contains(asked.Path, "/"+defaultVoice+"/stream?output_format=pcm_24000") {
		t.Errorf("asked %s", asked.Path)
	}
	for _, test := range [][3]string{
		{"eleven_multilingual_v2", "zh", ""}, {"eleven_flash_v2_5", "zh-TW", "zh"}, {"eleven_flash_v2_5", "nb", "no"}, {"eleven_flash_v2_5", "la", ""},
		{"eleven_v3", "la", "la"}, {"eleven_flash_v2_5", "", ""},
	} {
		if got := language(test[0], test[1]); got != test[2] {
			t.Errorf("%s of %s: %q, want %q", test[1], test[0], got, test[2])
		}
	}
	if _, err := NewTTS(service.Section{Format: "flac"}); err == nil {
		t.Error("a format that is not read: no error")
	}
}

// eleven_v3 is spoken by no socket, and Opus is passed through.
func TestModelWithoutSockets(t *testing.T) {
	for model, path := range map[string]string{"eleven_v3": "/stream?", "eleven_flash_v2_5": "/multi-stream-input?"} {
		s := fake.New(t)
		v, err := NewTTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL() + "/v1/", Format: "opus", Models: map[service.Role]string{service.TTS: model}})
		if err != nil {
			t.Fatal(err)
		}
		packets := 0
		for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "some words"}) {
			if err != nil {
				t.Fatal(err)
			}
			packets += len(sound.Packets)
		}
		if at := s.Requests()[0].Path; packets == 0 || !strings.Contains(at, path) || !strings.HasPrefix(at, "/v1/text") || !strings.Contains(at, "opus_48000") {
			t.Errorf("%s: %d packets by %s", model, packets, at)
		}
	}
}

// A context that is given up is spoken to its end, and there may be five.
func TestContextsThatAreGivenUp(t *testing.T) {
	c := &contexts{open: map[string]bool{}}
	for i, good := range []bool{true, true, true, false} {
		c.open[string(rune('a'+i))] = true
		if got := c.Cancel(); got != good {
			t.Errorf("with %d contexts the socket is good for more: %v", len(c.open), got)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"message_type":"partial_transcript","text":"a"}`))
	f.Add([]byte(`{"message_type":"auth_error","error":{"message":"a"}}`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parse(b) })
}

// TestSentencesShareASocket: also after one that was given up, whose sound still comes;
// another voice has a socket of its own.
func TestSentencesShareASocket(t *testing.T) {
	s := fake.New(t)
	v, err := NewTTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL(), Speed: 1.1})
	if err != nil {
		t.Fatal(err)
	}
	const words = "a sentence of some length"
	whole := len(servicetest.Speech(words, 24000)) / 2
	for i, most := range []int{1 << 30, 1, 1 << 30} {
		samples := 0
		for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: words, Language: "en"}) {
			if err != nil {
				t.Fatal(err)
			}
			if samples += len(sound.PCM); samples >= most {
				break
			}
		}
		if most > whole && samples != whole {
			t.Errorf("%d: %d samples, want %d", i, samples, whole)
		}
	}
	if s.Conns() != 1 {
		t.Errorf("%d sockets, want 1", s.Conns())
	}
	asked := s.Requests()[0]
	if !strings.Contains(asked.Path, "/"+defaultVoice+"/multi-stream-input?") || !strings.Contains(string(asked.Body), `"speed":1.1`) {
		t.Errorf("asked %s %s", asked.Path, asked.Body)
	}
}

func TestMessagesOfAVoice(t *testing.T) {
	for name, test := range map[string]struct {
		message string
		want    spoken
		fails   bool // it tells of an error
		broken  bool
	}{
		"sound":          {`{"audio":"AQI=","isFinal":null,"contextId":"s1","alignment":{}}`, spoken{context: "s1", sound: []byte{1, 2}}, false, false},
		"last":           {`{"audio":null,"isFinal":true,"contextId":"s1"}`, spoken{context: "s1", final: true}, false, false},
		"its other name": {`{"is_final":"true","context_id":"s1"}`, spoken{context: "s1", final: true}, false, false},
		"error":          {`{"error":"quota_exceeded","message":"x","code":1008}`, spoken{}, true, false},
		"no error":       {`{"error":null,"contextId":"s1"}`, spoken{context: "s1"}, false, false},
		"not base64":     {`{"audio":"?"}`, spoken{}, false, true},
		"torn":           {`{"audio":`, spoken{}, false, true},
	} {
		got, err := parseVoice([]byte(test.message))
		failed := got.failed
		got.failed = nil
		if got.context != test.want.context || string(got.sound) != string(test.want.sound) || got.final != test.want.final || (failed != nil) != test.fails || (err != nil) != test.broken {
			t.Errorf("%s: %+v, %v, error %v", name, got, failed, err)
		}
	}
}

func FuzzVoice(f *testing.F) {
	f.Add([]byte(`{"audio":"AQI=","isFinal":null,"contextId":"s1"}`))
	f.Add([]byte(`{"error":"quota_exceeded","message":"x"}`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseVoice(b) })
}

func TestVoicesAreListed(t *testing.T) {
	s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/voices" || r.Header.Get("Xi-Api-Key") != servicetest.Key {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"detail":{"status":"invalid_api_key","message":"Invalid API key"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"voices":[{"voice_id":"abc","name":"Ada","labels":{"language":"en"}},{"voice_id":"def","name":"Bob","labels":null}]}`)
	})
	voices, err := listVoices(t.Context(), service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL()})
	if err != nil || len(voices) != 2 || voices[0].Name != "abc" || voices[0].Title != "Ada" || voices[0].Language[0] != "en" || voices[1].Language != nil {
		t.Errorf("%+v, error %v", voices, err)
	}
	_, err = listVoices(t.Context(), service.Section{Name: "x", Key: "wrong", BaseURL: s.URL()})
	if failed, ok := errors.AsType[*providers.Error](err); !ok || failed.Kind != providers.Unauthorized {
		t.Errorf("with a wrong key: %v", err)
	}
}

func TestSpeedIsWhatTheServiceTakes(t *testing.T) {
	for speed, want := range map[float64]float64{0.5: 0.7, 1: 1, 2: 1.2} {
		if got := voiceSettings(service.Section{Speed: speed})["speed"]; got != want {
			t.Errorf("%v: %v, want %v", speed, got, want)
		}
	}
	if voiceSettings(service.Section{}) != nil {
		t.Error("settings of nothing")
	}
}

// TestModelOfTheOtherRole: a section's model is that of both roles, and only one can have it.
func TestModelOfTheOtherRole(t *testing.T) {
	for model, want := range map[string][2]string{
		"":             {hearingModel, voiceModel},
		"scribe_v9":    {"scribe_v9", voiceModel},
		"eleven_v3":    {hearingModel, "eleven_v3"},
		"own_finetune": {hearingModel, "own_finetune"},
	} {
		s := service.Section{Models: map[service.Role]string{service.ASR: model, service.TTS: model}}
		if hears, speaks := modelOf(s, service.ASR), modelOf(s, service.TTS); hears != want[0] || speaks != want[1] {
			t.Errorf("%q: %s hears and %s speaks, want %v", model, hears, speaks, want)
		}
	}
}
