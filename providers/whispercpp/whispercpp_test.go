package whispercpp

import (
	"strings"
	"testing"

	"xiaozhi/providers/service"
)

func TestReplies(t *testing.T) {
	for body, want := range map[string]struct{ words, fails string }{
		`{"text":" Turn it\n on.\n"}`:                         {"Turn it on.", ""},
		`{"text":" [BLANK_AUDIO]\n"}`:                         {"", ""},
		`{"text":" (music)\n Hello.\n","language":"english"}`: {"Hello.", ""},
		`{"text":"a b","segments":[{"text":" a","no_speech_prob":0.1},{"text":" Thanks for watching","no_speech_prob":0.9}]}`: {"a", ""},
		`{"error":"failed to read audio data"}`: {"", "failed to read"},
		`{}`:                                    {"", "no text"},
		`<html>`:                                {"", "not the JSON"},
	} {
		r, err := parse([]byte(body), "application/json")
		if want.fails != "" {
			if err == nil || !strings.Contains(err.Error(), want.fails) {
				t.Errorf("%s: %v, want %q", body, err, want.fails)
			}
			continue
		}
		if err != nil || r.words(noSpeech) != want.words {
			t.Errorf("%s: %q, %v, want %q", body, r.words(noSpeech), err, want.words)
		}
	}
	if r, err := parse([]byte("plain words"), "text/plain; charset=utf-8"); err != nil || r.words(noSpeech) != "plain words" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAddress(t *testing.T) {
	a, err := New(service.Section{Name: "x", BaseURL: "http://host:8080/api/", Settings: map[string]any{"path": "/v1/audio/transcriptions"}})
	if err != nil || a.url != "http://host:8080/api/v1/audio/transcriptions" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := New(service.Section{Name: "x", BaseURL: "ws://host:8080"}); err == nil || !strings.Contains(err.Error(), "x: base_url") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"text":" a\n","segments":[{"text":" a","no_speech_prob":0.1}]}`), "application/json")
	f.Add([]byte("a"), "text/plain")
	f.Fuzz(func(_ *testing.T, b []byte, kind string) {
		if r, err := parse(b, kind); err == nil {
			_ = r.words(noSpeech)
		}
	})
}
