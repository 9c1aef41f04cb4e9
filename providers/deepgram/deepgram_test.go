package deepgram

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/deepgram"
	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestSessionIsToldEverythingBeforehand(t *testing.T) {
	for name, test := range map[string]struct {
		s        service.Section
		language string
		path     string
		want     map[string]string // "" is not there
	}{
		"nova": {service.Section{}, "zh-TW", "/v1/listen", map[string]string{
			"model": "nova-3", "language": "zh-TW", "encoding": "linear16", "sample_rate": "16000", "interim_results": "true", "endpointing": "false", "smart_format": ""}},
		"no language": {service.Section{Extra: map[string]any{"mip_opt_out": true}}, "", "/v1/listen", map[string]string{"language": "multi", "mip_opt_out": "true"}},
		"a setting":   {service.Section{Settings: map[string]any{"language": "de", "smart_format": true}}, "zh", "/v1/listen", map[string]string{"language": "de", "smart_format": "true"}},
		"flux": {service.Section{Models: map[service.Role]string{service.ASR: "flux-general-en"}}, "en", "/v2/listen", map[string]string{
			"model": "flux-general-en", "eot_threshold": "0.9", "eot_timeout_ms": "10000", "language": "", "language_hint": "", "channels": ""}},
		"phrases":      {service.Section{Settings: map[string]any{"phrases": true}}, "en", "/v1/listen", map[string]string{"keyterm": "the lamp"}},
		"flux of many": {service.Section{Models: map[service.Role]string{service.ASR: "flux-general-multi"}}, "es", "/v2/listen", map[string]string{"language_hint": "es"}},
	} {
		l := &listener{s: test.s, model: test.s.Model(service.ASR, hearingModel), known: lru.New[string, string](mostTags, 0)}
		at, err := url.Parse(l.address(providers.ASRRequest{Rate: 16000, Phrases: []string{"the lamp", "the fan"}}, l.languages(test.language)[0]))
		if err != nil || at.Host != "api.deepgram.com" || at.Path != test.path {
			t.Errorf("%s: %v, error %v", name, at, err)
			continue
		}
		for key, want := range test.want {
			if got := at.Query().Get(key); got != want {
				t.Errorf("%s: %s is %q, want %q", name, key, got, want)
			}
		}
	}
}

// TestModelOfTheOtherRole: a section's model is that of both roles, and only one can have it.
func TestModelOfTheOtherRole(t *testing.T) {
	for model, want := range map[string][2]string{
		"":                 {hearingModel, "aura-2-thalia-en"},
		"flux-general-en":  {"flux-general-en", "aura-2-thalia-en"},
		"aura-2-apollo-en": {hearingModel, "aura-2-apollo-en"},
	} {
		s := service.Section{Models: map[service.Role]string{service.ASR: model, service.TTS: model}}
		if hears, speaks := modelOf(s), voiceOf(s, "en"); hears != want[0] || speaks != want[1] {
			t.Errorf("%q: %s hears and %s speaks, want %v", model, hears, speaks, want)
		}
	}
}

func TestMessagesAreUnderstood(t *testing.T) {
	for name, test := range map[string]struct {
		parse   func([]byte) (result, bool, error)
		message string
		want    result
		ok      bool
		fails   bool
	}{
		"interim":    {parseNova, `{"type":"Results","is_final":false,"channel":{"alternatives":[{"transcript":"a b"}]}}`, result{text: "a b"}, true, false},
		"final":      {parseNova, `{"type":"Results","is_final":true,"speech_final":false,"channel":{"alternatives":[{"transcript":"a b","languages":["en"]}]}}`, result{text: "a b", done: true, lang: "en"}, true, false},
		"no words":   {parseNova, `{"type":"Results","is_final":true,"channel":{"alternatives":[]}}`, result{done: true}, true, false},
		"begins":     {parseNova, `{"type":"SpeechStarted","channel":[0,1],"timestamp":1.5}`, result{}, false, false},
		"end":        {parseNova, `{"type":"Metadata","request_id":"x"}`, result{end: true}, true, false},
		"no channel": {parseNova, `{"type":"Results"}`, result{}, false, true},
		"no JSON":    {parseNova, `{"type":"Res`, result{}, false, true},
		"error":      {parseNova, `{"type":"Error","description":"x"}`, result{}, false, true},
		"hello":      {parseFlux, `{"type":"Connected","request_id":"x","sequence_id":0}`, result{}, false, false},
		"update":     {parseFlux, `{"type":"TurnInfo","event":"Update","turn_index":1,"transcript":"a"}`, result{text: "a", turn: 1}, true, false},
		"eager":      {parseFlux, `{"type":"TurnInfo","event":"EagerEndOfTurn","turn_index":1,"transcript":"a"}`, result{text: "a", turn: 1}, true, false},
		"turn":       {parseFlux, `{"type":"TurnInfo","event":"EndOfTurn","turn_index":2,"transcript":"a b","languages":["es"]}`, result{text: "a b", done: true, lang: "es", turn: 2}, true, false},
		"flux error": {parseFlux, `{"type":"Error","code":"INTERNAL_SERVER_ERROR","description":"x"}`, result{}, false, true},
	} {
		if got, ok, err := test.parse([]byte(test.message)); got != test.want || ok != test.ok || (err != nil) != test.fails {
			t.Errorf("%s: %+v, %v, error %v", name, got, ok, err)
		}
	}
}

func TestRefusalsAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		r    transport.Refusal
		want providers.Kind
	}{
		"key":           {transport.Refusal{Status: 401, Kind: providers.Unauthorized, Text: `{"err_code":"INVALID_AUTH","err_msg":"Invalid credentials."}`}, providers.Unauthorized},
		"money":         {transport.Refusal{Status: 402, Kind: providers.NoCredit, Text: `{"err_code":"ASR_PAYMENT_REQUIRED","err_msg":"no credits"}`}, providers.NoCredit},
		"model":         {transport.Refusal{Status: 403, Kind: providers.Unauthorized, Text: `{"err_code":"INSUFFICIENT_PERMISSIONS","err_msg":"Project does not have access to the requested model."}`}, providers.BadRequest},
		"balance":       {transport.Refusal{Status: 403, Kind: providers.Unauthorized, Text: "balance too low"}, providers.NoCredit},
		"not decodable": {transport.Refusal{Kind: providers.Unauthorized, Code: "close 1008", Text: "DATA-0000"}, providers.BadRequest},
		"too much text": {transport.Refusal{Kind: providers.Unauthorized, Code: "close 1008", Text: "DATA-0001"}, providers.RateLimited},
		"idle":          {transport.Refusal{Kind: providers.Unavailable, Code: "close 1011", Text: "NET-0001"}, providers.Unavailable},
	} {
		if judge(&test.r); test.r.Kind != test.want {
			t.Errorf("%s: %v, want %v", name, test.r.Kind, test.want)
		}
	}
}

// TestTurnWithoutItsEnd: flux begins a new turn, and the words of the one before stay.
func TestTurnWithoutItsEnd(t *testing.T) {
	var s session
	var got []recognition.Result
	for _, r := range []result{{text: "a"}, {text: "a b"}, {text: "c", turn: 1}, {text: "c d", turn: 1, done: true}, {text: "e", turn: 2}} {
		got = append(got, s.results(r)...)
	}
	want := []recognition.Result{
		{Kind: recognition.Partial, Text: "a"}, {Kind: recognition.Partial, Text: "a b"}, {Kind: recognition.Sentence, Text: "a b"},
		{Kind: recognition.Partial, Text: "c"}, {Kind: recognition.Sentence, Text: "c d"}, {Kind: recognition.Partial, Text: "e"},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if got[i] != w {
			t.Errorf("%d: %+v, want %+v", i, got[i], w)
		}
	}
}

func TestVoiceIsAModel(t *testing.T) {
	s := fake.New(t)
	for format, rate := range map[string]int{"": 24000, "mp3": 0, "opus": 48000} {
		v, err := NewTTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL(), Format: format, Voices: map[string]string{"en": "aura-2-apollo-en"}})
		if err != nil {
			t.Fatal(err)
		}
		samples := 0
		for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello there", Language: "en"}) {
			samples += 1440 * len(sound.Packets)
			if err != nil || rate > 0 && sound.Rate != rate && len(sound.Packets) == 0 {
				t.Fatalf("%s: %d Hz, error %v", format, sound.Rate, err)
			}
			samples += len(sound.PCM)
		}
		if at, _ := url.Parse(s.Requests()[len(s.Requests())-1].Path); samples < 5000 || at.Query().Get("model") != "aura-2-apollo-en" {
			t.Errorf("%s: %d samples of %v", format, samples, at)
		}
	}
	if _, err := NewTTS(service.Section{Format: "flac"}); err == nil {
		t.Error("a format that is not read: no error")
	}
}

func TestLongTextIsCut(t *testing.T) {
	s := fake.New(t)
	v, err := NewTTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL() + "/v1/speak"})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: strings.Repeat("word. ", 400), Language: "en"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestOpusIsPassedThrough(t *testing.T) {
	v, err := NewTTS(service.Section{Name: "x", BaseURL: fake.New(t).URL(), Key: servicetest.Key, Format: "opus"})
	if err != nil {
		t.Fatal(err)
	}
	packets := 0
	for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "some words", Language: "en"}) {
		if err != nil {
			t.Fatal(err)
		}
		packets += len(sound.Packets)
	}
	if packets == 0 {
		t.Error("it was decoded")
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"type":"Results","is_final":true,"channel":{"alternatives":[{"transcript":"a"}]}}`))
	f.Add([]byte(`{"type":"TurnInfo","event":"EndOfTurn","transcript":"a"}`))
	f.Add([]byte(`{"type":"Error","description":7}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func([]byte) (result, bool, error){parseNova, parseFlux} {
			if _, ok, err := parse(b); ok && err != nil {
				t.Errorf("words with an error: %v", err)
			}
		}
	})
}

func TestVoicesAreListed(t *testing.T) {
	s := servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Token "+servicetest.Key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"stt":[{"canonical_name":"nova-3"}],"tts":[{"name":"thalia","canonical_name":"aura-2-thalia-en","languages":["en","en-US"]}]}`)
	})
	voices, err := listVoices(t.Context(), service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL()})
	if err != nil || len(voices) != 1 || voices[0].Name != "aura-2-thalia-en" || len(voices[0].Language) != 2 {
		t.Errorf("%+v, error %v", voices, err)
	}
	if _, err := listVoices(t.Context(), service.Section{Name: "x", BaseURL: s.URL()}); err == nil {
		t.Error("without a key: no error")
	}
}

// TestUnknownLanguageIsHeard: the next best language is asked for, and known from then on.
func TestUnknownLanguageIsHeard(t *testing.T) {
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		s.Note(servicetest.Request{Path: r.URL.Query().Get("language")})
		if r.URL.Query().Get("language") != "zh" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"err_code":"Bad Request","err_msg":"Bad Request: No such model/language/tier combination found."}`)
			return
		}
		if c, ok := s.Socket(w, r, nil); ok {
			defer func() { _ = c.Close() }()
			s.Hold(c)
		}
	})
	dialer, err := transport.NewDialer(transport.DialerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{s: service.Section{BaseURL: s.URL()}, dialer: dialer, model: hearingModel, known: lru.New[string, string](mostTags, 0)}
	for range 2 {
		socket, err := l.open(t.Context(), providers.ASRRequest{Rate: 16000, Language: "zh-SG"})
		if err != nil {
			t.Fatal(err)
		}
		socket.Close()
	}
	if _, err := l.open(t.Context(), providers.ASRRequest{Rate: 16000, Language: "fi"}); err == nil {
		t.Error("a language that is not there, and no other one: no error")
	}
	var asked []string
	for _, r := range s.Requests() {
		asked = append(asked, r.Path)
	}
	if want := []string{"zh-SG", "zh", "zh", "fi", "multi"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

// TestNoVoiceForChinese: no voice of Aura speaks it, which is said before anything is asked, so that the next member speaks.
func TestNoVoiceForChinese(t *testing.T) {
	s := fake.New(t)
	v, err := NewTTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "你好", Language: "zh"}) {
		if !providers.LacksLanguage(err) || transport.CauseOf(err, false) != transport.CauseLanguage || s.Conns() != 0 {
			t.Errorf("got %v", err)
		}
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "Hello.", Language: "en-GB"}) {
		if err != nil {
			t.Error(err)
		}
	}
}
