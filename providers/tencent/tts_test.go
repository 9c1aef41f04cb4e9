package tencent

import (
	"sync"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/tencent"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestSpeeds(t *testing.T) {
	for speed, want := range map[float64]float64{0.1: -2, 0.6: -2, 0.8: -1, 1: 0, 1.2: 1, 1.5: 2, 2.5: 6, 9: 6} {
		if got := speedOf(speed); got < want-0.01 || got > want+0.01 {
			t.Errorf("%v: %v, want %v", speed, got, want)
		}
	}
}

func TestSentencesWaitForAFreeConnection(t *testing.T) {
	t.Parallel()
	s := fake.New(t)
	v, err := newTTS(service.Section{
		Name: "x", Key: servicetest.Key, Secret: servicetest.Secret, ID: servicetest.ID, BaseURL: s.URL(), Settings: map[string]any{"most_connections": 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello", Language: "en"}) {
				if n := s.Open(); err != nil || n > 2 { // the service may not have noticed yet that one is closed
					t.Errorf("%d connections at once, error %v", n, err)
				}
			}
		})
	}
	all.Wait()
}

func TestVoiceIsANumber(t *testing.T) {
	v, err := newTTS(service.Section{Name: "x", ID: "1", BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello", Voice: "Joe"}) {
		if failed, ok := err.(*providers.Error); !ok || failed.Kind != providers.BadRequest { //nolint:errorlint // as it leaves a provider
			t.Errorf("error %v", err)
		}
	}
	if _, err := newTTS(service.Section{Name: "x", ID: "mine"}); err == nil {
		t.Error("an app id that is no number was taken")
	}
}

func TestKindsOfFailures(t *testing.T) {
	for code, want := range map[int]providers.Kind{
		4001: providers.BadRequest, 4002: providers.Unauthorized, 4004: providers.NoCredit, 4006: providers.RateLimited, 5000: providers.Unavailable,
	} {
		if got := kindOfHearing(code); got != want {
			t.Errorf("recognition %d: %v, want %v", code, got, want)
		}
	}
	for code, want := range map[int]providers.Kind{
		10001: providers.BadRequest, 10002: providers.RateLimited, 10003: providers.Unauthorized, 20000: providers.Unavailable,
	} {
		if got := kindOfSpeaking(code); got != want {
			t.Errorf("voices %d: %v, want %v", code, got, want)
		}
	}
	refused := transport.Refused(providers.Unavailable, "20001", "the account is in arrears")
	if _ = judged(refused); refused.Kind != providers.NoCredit {
		t.Errorf("arrears are %v", refused.Kind)
	}
}

func TestEngineFitsTheLanguage(t *testing.T) {
	for language, want := range map[string]string{"": "16k_zh", "zh-CN": "16k_zh", "en-GB": "16k_en", "ja": "16k_ja", "vi": "16k_multi_lang"} {
		if got := (&account{}).model(language); got != want {
			t.Errorf("%q: %s, want %s", language, got, want)
		}
	}
	own := service.Section{Models: map[service.Role]string{service.ASR: "16k_zh_large"}}
	if got := (&account{section: own}).model("en"); got != "16k_zh_large" {
		t.Errorf("the model of the settings is not taken, but %s", got)
	}
}
