package service

import (
	"slices"
	"testing"

	"xiaozhi/providers"
)

func TestSettingsHaveDefaults(t *testing.T) {
	s := Section{Settings: map[string]any{"mode": "2pass", "insecure": true, "chunk": 10, "rate": 1.5, "empty": ""}}
	if got := s.Text("mode", "x") + s.Text("empty", "y") + s.Text("none", "z"); got != "2passyz" {
		t.Errorf("texts %q, want 2passyz", got)
	}
	if !s.Flag("insecure", false) || s.Flag("mode", false) || !s.Flag("none", true) {
		t.Error("a flag is not what was set, or not its default")
	}
	if s.Within("chunk", 0, 1, 5) != 5 || s.Within("rate", 0, 2, 5) != 2 || s.Within("none", 3, 1, 5) != 3 {
		t.Error("a number is not within its range")
	}
	if s.Number("chunk", 0) != 10 || s.Number("rate", 0) != 1.5 || s.Number("mode", 7) != 7 {
		t.Error("a number is not what was set, or not its default")
	}
}

func TestAddress(t *testing.T) {
	regions := map[string]string{"cn": "https://cn", "intl": "https://intl"}
	tests := map[string]struct {
		s    Section
		want string
	}{
		"nothing set": {Section{}, "https://cn"},
		"region":      {Section{Region: "intl"}, "https://intl"},
		"own address": {Section{Region: "intl", BaseURL: "http://home"}, "http://home"},
	}
	for name, test := range tests {
		if got := test.s.Address(regions, "https://cn"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestRolesAreThoseWithMakers(t *testing.T) {
	k := Kind{
		ASR: func(Section) (providers.ASR, error) { return nil, nil },
		TTS: func(Section) (providers.TTS, error) { return nil, nil },
	}
	if got := k.Roles(); !slices.Equal(got, []Role{ASR, TTS}) {
		t.Errorf("roles %v, want asr and tts", got)
	}
	if (Section{Models: map[Role]string{ASR: "a"}}).Model(TTS, "b") != "b" {
		t.Error("the model of another role was taken")
	}
}

func TestVoiceForARequest(t *testing.T) {
	s := Section{Voices: map[string]string{"": "all", "zh": "chinese", "pt": "portuguese"}}
	for _, test := range []struct {
		s               Section
		language, named string
		want            string
	}{
		{s, "zh", "", "chinese"},
		{s, "zh-TW", "", "chinese"},
		{s, "ja", "", "all"},
		{s, "zh", "named", "named"},
		{Section{}, "zh", "", "own"},
		{Section{Voices: map[string]string{"zh": "chinese"}}, "en", "", "own"},
	} {
		if got := test.s.Voice(providers.TTSRequest{Language: test.language, Voice: test.named}, "own"); got != test.want {
			t.Errorf("%q %q: %q, want %q", test.language, test.named, got, test.want)
		}
	}
}

func TestFittingVoice(t *testing.T) {
	voices := []Voice{{Name: "any"}, {Name: "ada", Language: []string{"en", "de"}}, {Name: "mei", Language: []string{"zh"}}, {Name: "bob", Language: []string{"en"}}}
	for language, want := range map[string]string{"en": "ada", "de-AT": "ada", "zh-TW": "mei", "fi": "any", "": "any"} {
		if got := Fitting(voices, language); got != want {
			t.Errorf("%q: %q, want %q", language, got, want)
		}
	}
	if got := Fitting(nil, "en"); got != "" {
		t.Errorf("of none: %q", got)
	}
}

func TestJoin(t *testing.T) {
	for _, test := range [][3]string{
		{"https://x", "/v1/speak?a=b", "https://x/v1/speak?a=b"},
		{"https://x:81/", "/v1/speak", "https://x:81/v1/speak"},
		{"wss://x/proxy/", "/v1/speak", "wss://x/proxy/v1/speak"},
		{"https://x/v1", "/v1/speak?a=b", "https://x/v1/speak?a=b"},
		{"wss://x/api/v1/speak/", "/api/v1/speak", "wss://x/api/v1/speak"},
		{"https://v1", "/v1/speak", "https://v1/v1/speak"},
		{"https://x/a/v1", "/", "https://x/a/v1/"},
		{"https://x/p?key=1", "/v1/speak?a=b", "https://x/p/v1/speak?a=b&key=1"},
		{"https://x?key=1", "/v1", "https://x/v1?key=1"},
		{"ws://[::1]:9/a//", "/v1", "ws://[::1]:9/a/v1"},
		{"https://x/proxy/v1/speak?key=1", "/v1/speak?a=b", "https://x/proxy/v1/speak?a=b&key=1"},
		{"https://x/v12", "/v1/speak", "https://x/v12/v1/speak"},
		{"ws://x/", "/", "ws://x/"},
	} {
		if got := Join(test[0], test[1]); got != test[2] {
			t.Errorf("%s and %s: %s, want %s", test[0], test[1], got, test[2])
		}
	}
}

func TestTries(t *testing.T) {
	none, two := 0, 2
	for _, test := range []struct {
		retries *int
		want    int
	}{{nil, 0}, {&none, 1}, {&two, 3}} {
		if got := (Section{Retries: test.retries}).Tries(); got != test.want {
			t.Errorf("%v: %d tries, want %d", test.retries, got, test.want)
		}
	}
}

func TestHTTP(t *testing.T) {
	for in, want := range map[string]string{"ws://a": "http://a", "wss://a/b": "https://a/b", "http://a": "http://a", "wsx://a": "wsx://a"} {
		if got := HTTP(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
