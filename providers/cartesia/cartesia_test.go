package cartesia

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/cartesia"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func speak(t *testing.T, v providers.TTS, words string, most int) (samples int, err error) {
	t.Helper()
	for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: words, Language: "zh-TW"}) {
		if err != nil {
			return samples, err
		}
		if samples += len(sound.PCM); samples >= most {
			break
		}
	}
	return samples, nil
}

// TestSentencesShareASocket: also after one that was given up, whose sound still comes.
func TestSentencesShareASocket(t *testing.T) {
	s := fake.New(t)
	v, err := NewTTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL(), Speed: 1.2, Settings: map[string]any{"emotion": "calm"}})
	if err != nil {
		t.Fatal(err)
	}
	const words = "a sentence of some length"
	whole := len(servicetest.Speech(words, voiceRate)) / 2
	for i, most := range []int{1 << 30, 1, 1 << 30} {
		samples, err := speak(t, v, words, most)
		if err != nil || most > whole && samples != whole {
			t.Errorf("%d: %d samples, error %v, want %d", i, samples, err, whole)
		}
	}
	if s.Conns() != 1 {
		t.Errorf("%d sockets, want 1", s.Conns())
	}
	first, _, _ := strings.Cut(string(s.Requests()[0].Body), "\n")
	var got map[string]any
	if err := json.Unmarshal([]byte(first), &got); err != nil {
		t.Fatal(err)
	}
	how, _ := got["generation_config"].(map[string]any)
	if got["language"] != "zh" || got["continue"] != false || how["speed"] != 1.2 || how["emotion"] != "calm" || got["model_id"] != voiceModel {
		t.Errorf("asked %s", first)
	}
}

func TestMessagesAreUnderstood(t *testing.T) {
	for name, test := range map[string]struct {
		message string
		sound   string
		done    bool
		kind    providers.Kind // of the error that it tells of
		fails   bool           // it tells of one
		broken  bool
	}{
		"chunk":       {`{"type":"chunk","context_id":"a","data":"AQI=","done":false,"status_code":206}`, "\x01\x02", false, 0, false, false},
		"done":        {`{"type":"done","context_id":"a","done":true}`, "", true, 0, false, false},
		"flushed":     {`{"type":"flush_done","context_id":"a"}`, "", false, 0, false, false},
		"no key":      {`{"type":"error","status_code":401,"title":"Unauthorized","message":"x"}`, "", false, providers.Unauthorized, true, false},
		"too many":    {`{"type":"error","status_code":429,"title":"Too many","message":"concurrency limit"}`, "", false, providers.RateLimited, true, false},
		"no money":    {`{"type":"error","status_code":402,"message":"out of credits"}`, "", false, providers.NoCredit, true, false},
		"older error": {`{"type":"error","status_code":400,"error":"bad voice"}`, "", false, providers.BadRequest, true, false},
		"not base64":  {`{"type":"chunk","data":"?"}`, "", false, 0, false, true},
		"torn":        {`{"type":"chu`, "", false, 0, false, true},
	} {
		got, err := parse([]byte(test.message))
		refusal, _ := errors.AsType[*transport.Refusal](got.failed)
		if string(got.sound) != test.sound || got.done != test.done || (got.failed != nil) != test.fails || (err != nil) != test.broken || refusal != nil && refusal.Kind != test.kind {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
	}
	if _, err := NewTTS(service.Section{Format: "mp3"}); err == nil {
		t.Error("a format that is not read: no error")
	}
}

// Numbers may come as texts, and members of other types are gone over.
func TestOddMessages(t *testing.T) {
	m, err := parse([]byte(`{"type":"error","status_code":"402","error":"no money","data":7,"context_id":"a"}`))
	if r, ok := errors.AsType[*transport.Refusal](m.failed); err != nil || !ok || r.Kind != providers.NoCredit || r.Text != "no money" {
		t.Errorf("%+v, %v", m, err)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"type":"chunk","context_id":"a","data":"AQI="}`))
	f.Add([]byte(`{"type":"error","status_code":429,"message":"x"}`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parse(b) })
}

// TestVoicesAreListed: of both shapes that the list has had.
func TestVoicesAreListed(t *testing.T) {
	for _, list := range []string{`{"data":[{"id":"abc","name":"Ada","language":"en"}],"has_more":false}`, `[{"id":"abc","name":"Ada","language":"en"}]`} {
		s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/voices" || r.Header.Get("Cartesia-Version") != version {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = io.WriteString(w, list)
		})
		voices, err := listVoices(t.Context(), service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL()})
		if err != nil || len(voices) != 1 || voices[0].Name != "abc" || voices[0].Title != "Ada" || voices[0].Language[0] != "en" {
			t.Errorf("%+v, error %v", voices, err)
		}
	}
}

func TestSpeedIsWhatTheServiceTakes(t *testing.T) {
	for speed, want := range map[float64]float64{0.5: 0.6, 1: 1, 2: 1.5} {
		m := request(service.Section{Speed: speed}, providers.TTSRequest{Text: "a", Language: "en"}, "s1", voiceRate)
		if how, _ := m["generation_config"].(map[string]any); how["speed"] != want {
			t.Errorf("%v: %v, want %v", speed, how["speed"], want)
		}
	}
}
