package edge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/edge"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

const sentence = "a sentence of some length"

// speak returns the length of a sentence's sound.
func speak(ctx context.Context, t *testing.T, s *servicetest.Server, words string, more func(*service.Section)) (time.Duration, error) {
	t.Helper()
	section := service.Section{Name: "edge", BaseURL: s.URL(), Timeouts: service.Timeouts{First: 200 * time.Millisecond, Next: 200 * time.Millisecond}}
	if more != nil {
		more(&section)
	}
	v, err := New(section)
	if err != nil {
		t.Fatal(err)
	}
	var length time.Duration
	for sound, err := range v.Synthesize(ctx, providers.TTSRequest{Text: words, Language: "zh"}) {
		if err != nil {
			return length, err
		}
		length += time.Duration(len(sound.Packets)) * 60 * time.Millisecond
		if sound.Rate > 0 {
			length += time.Duration(len(sound.PCM)) * time.Second / time.Duration(sound.Rate)
		}
	}
	return length, nil
}

func TestSentencesAreSpoken(t *testing.T) {
	s := fake.New(t)
	want := servicetest.PerRune * time.Duration(len(sentence))
	for _, format := range []string{"", "mp3-96", "opus"} {
		for _, fault := range []servicetest.Fault{servicetest.None, servicetest.Odd, servicetest.ClockAhead} {
			s.Fail(fault)
			got, err := speak(t.Context(), t, s, sentence, func(o *service.Section) { o.Format, o.Timeouts = format, service.Timeouts{} })
			if err != nil || got < want-20*time.Millisecond || got > want+150*time.Millisecond {
				t.Errorf("%q, %v: %v of sound, error %v, want %v", format, fault, got, err, want)
			}
		}
	}
	s.Fail(servicetest.None)
	before := len(s.Requests())
	if got, err := speak(t.Context(), t, s, "?!", nil); got != 0 || err != nil || len(s.Requests()) != before {
		t.Errorf("punctuation: %v, error %v", got, err)
	}
}

func TestFailuresAreNamed(t *testing.T) {
	s := fake.New(t)
	for fault, want := range map[servicetest.Fault]struct {
		kind  providers.Kind
		words string
	}{
		servicetest.WrongKey:   {providers.Unauthorized, "setting version"},
		servicetest.WrongVoice: {providers.BadRequest, "may not know the voice"},
		servicetest.Silent:     {providers.Unavailable, "in time"},
		servicetest.Cut:        {providers.Unavailable, ""},
		servicetest.Closed:     {providers.Unavailable, ""},
		servicetest.Broken:     {providers.Unavailable, ""},
	} {
		if !s.Knows(fault) {
			t.Logf("the fake cannot be %v", fault)
			continue
		}
		s.Fail(fault)
		_, err := speak(t.Context(), t, s, sentence, func(o *service.Section) { o.Voices = map[string]string{"": "xx-XX-NobodyNeural"} })
		failed, ok := errors.AsType[*providers.Error](err)
		if !ok || failed.Kind != want.kind || !strings.Contains(err.Error(), want.words) {
			t.Errorf("%v: %v, want %v and %q", fault, err, want.kind, want.words)
		}
	}
}

func TestWrongClockIsFollowed(t *testing.T) {
	c, err := newClient(service.Section{Name: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.address(), "wss://speech.platform.bing.com/consumer/speech/synthesize/readaloud/edge/v1?") {
		t.Error(c.address())
	}
	s := fake.New(t)
	s.Fail(servicetest.ClockAhead)
	if _, err := speak(t.Context(), t, s, sentence, nil); err != nil {
		t.Error(err)
	}
	if n := s.Conns(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// TestSpareSocket: one is opened in advance and used, and one that is dead costs a dial only.
func TestSpareSocket(t *testing.T) {
	s := fake.New(t)
	v, err := New(service.Section{Name: "edge", BaseURL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	say := func() {
		t.Helper()
		for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := v.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if say(); s.Conns() != 1 {
		t.Errorf("%d connections for two calls of Warm and a sentence, want 1", s.Conns())
	}
	if err := v.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead := v.spare.take()
	dead.Close()
	v.spare.put(dead)
	if say(); s.Conns() != 3 {
		t.Errorf("%d connections, want 3", s.Conns())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.Warm(ctx); err != context.Canceled { //nolint:errorlint // it must be unchanged
		t.Errorf("got %v", err)
	}
	if err := v.Warm(t.Context()); err != nil || v.spare.take() == nil {
		t.Errorf("no spare socket after one that failed: %v", err)
	}
}

func TestVoicesAreListed(t *testing.T) {
	s := fake.New(t)
	all, err := listVoices(t.Context(), service.Section{Name: "edge", BaseURL: s.URL()})
	if err != nil || len(all) == 0 || all[0].Name == "" || len(all[0].Language) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestVoiceOfALanguage(t *testing.T) {
	c, err := newClient(service.Section{Name: "edge", Voices: map[string]string{"de": "mine"}})
	if err != nil {
		t.Fatal(err)
	}
	for language, want := range map[string]string{
		"zh": "zh-CN-XiaoxiaoNeural", "en-GB": "en-GB-SoniaNeural", "en-AU": "en-US-AvaNeural", "ja-JP": "ja-JP-NanamiNeural",
		"de-AT": "mine", "": usual, "tlh": "en-US-AvaNeural",
	} {
		if got := c.voiceOf(providers.TTSRequest{Language: language}); got != want {
			t.Errorf("%q: %s, want %s", language, got, want)
		}
	}
	if _, err := New(service.Section{Name: "edge", Format: "wav"}); err == nil {
		t.Error("a format that may get an address banned was taken")
	}
}

// TestFewSockets: sentences wait for one another rather than open a crowd of sockets.
func TestFewSockets(t *testing.T) {
	s := fake.New(t)
	v, err := New(service.Section{Name: "edge", BaseURL: s.URL(), Settings: map[string]any{"most_connections": 2}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var most atomic.Int64
	for range 6 {
		all.Go(func() {
			for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
				if err != nil {
					t.Error(err)
				}
				most.Store(max(most.Load(), int64(v.dialer.Open())))
			}
		})
	}
	if all.Wait(); most.Load() < 1 || most.Load() > 2 {
		t.Errorf("%d sockets at once, want 2 at most", most.Load())
	}
}

// TestUnavailableIsTriedAgain: as often as the settings say, and a refusal never.
func TestUnavailableIsTriedAgain(t *testing.T) {
	for status, want := range map[int]int64{503: 3, 403: 1} {
		var asked atomic.Int64
		s := servicetest.New(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(status)
		})
		twice := 2
		if _, err := speak(t.Context(), t, s, sentence, func(o *service.Section) { o.Retries = &twice }); err == nil {
			t.Error("no error")
		}
		if asked.Load() != want {
			t.Errorf("status %d: %d requests, want %d", status, asked.Load(), want)
		}
	}
}
