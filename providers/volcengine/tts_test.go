package volcengine

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/volcengine"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/volcframe"
)

func TestVoiceContract(t *testing.T) {
	for _, mode := range []string{bidirection, unidirectional, lines} {
		t.Run(mode, func(t *testing.T) {
			var skip map[servicetest.Fault]string
			if mode == unidirectional {
				const waits = "it waits on the same socket as the other mode"
				skip = map[servicetest.Fault]string{servicetest.Silent: waits, servicetest.Huge: waits, servicetest.Slow: waits}
			}
			providertest.TestVoiceContract(t, providertest.Case{
				Skip: skip,
				Kind: Kind(), Fake: fake.New, Reuses: true, Keeps: mode != lines,
				Section: func(s *service.Section) { s.Settings = map[string]any{"tts_mode": mode} },
				Kinds: map[servicetest.Fault][]providers.Kind{
					servicetest.WrongModel: {providers.Unauthorized}, servicetest.WrongVoice: {providers.Unauthorized, providers.BadRequest},
				},
			})
		})
	}
}

// The compressed formats are those that a slow line wants.
func TestFormats(t *testing.T) {
	for format, packets := range map[string]bool{"mp3": false, "opus": true, "pcm": false} {
		s := section(fake.New(t))
		s.Format, s.Rate = format, 24000
		v, err := Kind().TTS(s)
		if err != nil {
			t.Fatal(err)
		}
		var length time.Duration
		passed := false
		for piece, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: servicetest.Words, Language: "zh"}) {
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			passed = passed || len(piece.Packets) > 0
			length += time.Duration(len(piece.Packets)) * 60 * time.Millisecond
			if piece.Rate > 0 {
				length += time.Duration(len(piece.PCM)) * time.Second / time.Duration(piece.Rate)
			}
		}
		want := time.Duration(len([]rune(servicetest.Words))) * servicetest.PerRune
		if length < want*9/10 || length > want*13/10 || passed != packets {
			t.Errorf("%s: %v of sound, want %v; packets %v", format, length, want, passed)
		}
	}
}

func TestResourceOfAVoice(t *testing.T) {
	for voice, want := range map[string]string{
		"zh_female_vv_uranus_bigtts": speaks2, "saturn_zh_female_keainvsheng_tob": speaks2, "zh_female_wanwanxiaohe_moon_bigtts": speaks1,
		"BV001_streaming": speaks1, "S_abc": clones2,
	} {
		if got := resourceOf(voice); got != want {
			t.Errorf("%s belongs to %s, want %s", voice, got, want)
		}
	}
}

// A model that is set for a whole section is that of one role.
func TestResourceOfARole(t *testing.T) {
	for model, want := range map[string][2]string{
		"": {"", ""}, speaks1: {"", speaks1}, "seed-icl-1.0": {"", "seed-icl-1.0"}, "volc.service_type.10029": {"", "volc.service_type.10029"}, hears1: {hears1, ""},
	} {
		s := service.Section{Models: map[service.Role]string{service.ASR: model, service.TTS: model}}
		if got := [2]string{resource(s, service.ASR), resource(s, service.TTS)}; got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}

func TestSpeechRates(t *testing.T) {
	for speed, want := range map[float64]int{0: 0, 1: 0, 0.5: -50, 0.1: -50, 1.29: 29, 0.9: -10, 2: 100, 5: 100} {
		if got := speechRate(speed); got != want {
			t.Errorf("a speed of %v is %d, want %d", speed, got, want)
		}
	}
}

// What the settings add goes into the object that it belongs to.
func TestExtraMembers(t *testing.T) {
	v := &voices{section: service.Section{Speed: 1.5, Format: "mp3"}}
	b, err := v.message(volcframe.EventStartSession, v.params("a"), map[string]any{"req_params": map[string]any{
		"audio_params": map[string]any{"emotion": "happy"}, "additions": map[string]any{"silence_duration": 100},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"emotion":"happy"`, `"speech_rate":50`, `"bit_rate":64000`, `"namespace":"BidirectionalTTS"`, `"speaker":"a"`, `"additions":"{\"silence_duration\":100}"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
}

// A connection that the service has forgotten costs a moment, and not the sentence.
func TestForgottenConnection(t *testing.T) {
	s := fake.New(t)
	v, err := Kind().TTS(section(s))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(fake.Idle + 50*time.Millisecond)
	}
	if s.Conns() != 2 {
		t.Errorf("%d connections, want one for each sentence", s.Conns())
	}
}

// A connection of which the service knows nothing may be a new one, too, if the first session
// is late: what is wrong with the sentence is told on another.
func TestForgottenNewConnection(t *testing.T) {
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		line, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer line.Close()
		started := volcframe.Frame{Kind: volcframe.TypeAnswer, Flags: volcframe.FlagEvent, Payload: []byte("{}")}.Bytes()
		started = slices.Concat(started[:4], []byte{0, 0, 0, volcframe.EventConnectionStarted, 0, 0, 0, 1, 'c'}, started[len(started)-6:])
		if _, err := line.Next(0); err != nil || !line.Say(servicetest.Binary(started)) {
			return
		}
		if _, err := line.Next(0); err == nil && s.Conns() == 1 { // the start of a session
			line.End(1000, "non-exist session: x")
			return
		}
		failed := volcframe.Frame{
			Kind: volcframe.TypeAnswer, Flags: volcframe.FlagEvent, Event: volcframe.EventSessionFailed, JSON: true,
			Payload: []byte(`{"status_code":45000001,"message":"speaker not found"}`),
		}
		line.Say(servicetest.Binary(failed.Bytes()))
		line.Hold()
	})
	v, err := Kind().TTS(section(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
		if failed, ok := errors.AsType[*providers.Error](err); !ok || failed.Kind != providers.BadRequest {
			t.Errorf("refused with %v", err)
		}
	}
	if s.Conns() != 2 {
		t.Errorf("%d connections, want 2", s.Conns())
	}
}

// The old service answers with the whole sound, and with codes of its own.
func TestOldService(t *testing.T) {
	var asked struct {
		App struct {
			ID      string `json:"appid"`
			Token   string `json:"token"`
			Cluster string `json:"cluster"`
		} `json:"app"`
		Audio struct {
			Voice string `json:"voice_type"`
		} `json:"audio"`
		Request struct {
			Text      string `json:"text"`
			Operation string `json:"operation"`
		} `json:"request"`
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&asked)
		answer := map[string]any{"reqid": "1", "code": 3000, "operation": "query", "message": "Success", "sequence": -1, "data": servicetest.Speech(asked.Request.Text, 24000)}
		if r.URL.Path != oldPath || r.Header.Get("Authorization") != "Bearer;"+servicetest.Key || asked.Request.Text == "no" {
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]any{"code": 3050, "message": "unknown voice"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer s.Close()
	v, err := Kind().TTS(service.Section{Name: "volc", Key: servicetest.Key, ID: servicetest.ID, BaseURL: s.URL, Settings: map[string]any{"tts_mode": old}})
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	for piece, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
		if err != nil {
			t.Fatal(err)
		}
		samples += len(piece.PCM)
	}
	if asked.App.ID != servicetest.ID || asked.App.Token != servicetest.Key || asked.App.Cluster != oldCluster || asked.Audio.Voice != oldVoice || asked.Request.Operation != "query" ||
		2*samples != len(servicetest.Speech("hello", 24000)) {
		t.Errorf("asked %+v, %d samples", asked, samples)
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "no"}) {
		if failed, ok := errors.AsType[*providers.Error](err); !ok || failed.Kind != providers.BadRequest || strings.Contains(err.Error(), servicetest.Key) {
			t.Errorf("refused with %v", err)
		}
	}
}
