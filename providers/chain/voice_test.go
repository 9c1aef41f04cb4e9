package chain

import (
	"context"
	"errors"
	"iter"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

func newTTS(t *testing.T, members ...providers.TTS) *TTS {
	t.Helper()
	c, err := NewTTS(members, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newASR(t *testing.T, members ...providers.ASR) *ASR {
	t.Helper()
	c, err := NewASR(members, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// speak gives how much sound came and the error.
func speak(ctx context.Context, v providers.TTS) (total time.Duration, last error) {
	for sound, err := range v.Synthesize(ctx, providers.TTSRequest{Text: "hello"}) {
		if last = err; err == nil {
			total += time.Duration(len(sound.PCM)) * time.Second / time.Duration(sound.Rate)
		}
	}
	return total, last
}

func TestTTSFailover(t *testing.T) {
	second := 300 * time.Millisecond // what "hello" takes with the second voice
	tests := []struct {
		name   string
		first  pt.Speech
		sound  time.Duration
		asked  int // of the second
		failed bool
	}{
		{"well", pt.Speech{Length: time.Second}, time.Second, 0, false},
		{"before the first sound", pt.Speech{Delay: time.Second, Err: unavailable("first")}, second, 1, false},
		{"after the first sound", pt.Speech{Length: time.Second, FailAt: 60 * time.Millisecond, Err: unavailable("first")}, 60*time.Millisecond + second, 1, false},
		{"nothing to say is no failure", pt.Speech{Silent: true}, 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other := &pt.TTS{Label: "second"}
				sound, err := speak(t.Context(), newTTS(t, &pt.TTS{Label: "first", Script: []pt.Speech{tt.first}}, other))
				if sound != tt.sound || len(other.Spoken()) != tt.asked || (err != nil) != tt.failed {
					t.Errorf("%v of sound, %d by the second, error %v", sound, len(other.Spoken()), err)
				}
			})
		})
	}
}

// TestTTSLanguage: a voice that does not know the language is no failure of it, and costs the next one no time.
func TestTTSLanguage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := &providers.Error{Provider: "first", Op: "speak", Kind: providers.BadRequest, Err: providers.ErrLanguage}
		var script []pt.Speech
		for range 2 * maxFailures {
			script = append(script, pt.Speech{Err: foreign})
		}
		first, other := &pt.TTS{Label: "first", Script: append(script, pt.Speech{Length: time.Second})}, &pt.TTS{Label: "second"}
		c := newTTS(t, first, other)
		began := time.Now()
		for range script {
			if sound, err := speak(t.Context(), c); err != nil || sound == 0 {
				t.Errorf("%v of sound, error %v", sound, err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		if sound, err := speak(t.Context(), c); err != nil || sound != time.Second || len(other.Spoken()) != len(script) {
			t.Errorf("a language that it knows: %v of sound, error %v, %d by the second", sound, err, len(other.Spoken()))
		}
		both := newTTS(t, &pt.TTS{Label: "first", Script: script}, &pt.TTS{Label: "second", Script: script})
		if _, err := speak(t.Context(), both); !providers.LacksLanguage(err) {
			t.Errorf("nobody knows it: %v", err)
		}
	})
}

func TestTTSTotalOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &pt.TTS{Label: "first", Script: []pt.Speech{{Err: unavailable("first")}}}
		second := &pt.TTS{Label: "second", Script: []pt.Speech{{}, {}, {}, {Err: errors.New("second broke")}}}
		v := newTTS(t, first, second)
		for range 3 {
			if _, err := speak(t.Context(), v); err != nil {
				t.Error(err)
			}
		}
		_, err := speak(t.Context(), v)
		pt.WantError(t, err, "first", providers.Unavailable)
		if !strings.Contains(err.Error(), "first: left out") || !strings.Contains(err.Error(), "second: second broke") {
			t.Errorf("error %v", err)
		}
		if n := len(first.Spoken()); n != 3 {
			t.Errorf("the first was asked %d times", n)
		}
		time.Sleep(rest)
		_, _ = speak(t.Context(), v)
		if n := len(first.Spoken()); n != 4 {
			t.Errorf("after its rest the first was asked %d times", n)
		}
	})
}

func TestTTSHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &pt.TTS{Script: []pt.Speech{{Delay: time.Hour}}}, &pt.TTS{}
		v := newTTS(t, first, second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := speak(ctx, v); err != context.DeadlineExceeded || len(second.Spoken()) != 0 { //nolint:errorlint // unchanged
			t.Errorf("got %v, %d by the second", err, len(second.Spoken()))
		}
	})
}

// hear says pcm in four parts, the last after a second, and gives what was understood.
func hear(ctx context.Context, t *testing.T, a providers.ASR, pcm []int16) (texts []string, final providers.Transcript, last error) {
	t.Helper()
	s, err := a.Open(ctx, providers.ASRRequest{Rate: 16000, Language: "zh", Phrases: []string{"x"}})
	if err != nil {
		return nil, final, err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		for part := range slices.Chunk(pcm, len(pcm)/4) {
			if err := s.Write(part); err != nil {
				t.Errorf("write: %v", err)
			}
			time.Sleep(time.Second / 4) // the bubble's
		}
		if err := s.CloseWrite(); err != nil {
			t.Errorf("CloseWrite: %v", err)
		}
	}()
	for tr, err := range s.Transcripts() {
		if last = err; err != nil {
			continue
		}
		texts = append(texts, tr.Text)
		final = tr
	}
	<-written
	return texts, final, last
}

func TestASRFailover(t *testing.T) {
	pcm := make([]int16, 16000)
	var sum int64
	for i := range pcm {
		pcm[i] = int16(i)
		sum += int64(pcm[i])
	}
	ok := pt.Hearing{Text: "second"}
	tests := []struct {
		name     string
		first    *pt.ASR
		texts    []string
		rejected bool
		took     bool // the second took over
	}{
		{"well", &pt.ASR{Script: []pt.Hearing{{Text: "first"}}}, []string{"first"}, false, false},
		{"nothing said is a result", &pt.ASR{Script: []pt.Hearing{{}}}, []string{""}, false, false},
		{"rejected is a result", &pt.ASR{Script: []pt.Hearing{{Text: "noise", Rejected: true}}}, []string{"noise"}, true, false},
		{"it cannot open", &pt.ASR{OpenErr: unavailable("first")}, []string{"second"}, false, true},
		{"it fails at the end", &pt.ASR{Script: []pt.Hearing{{Delay: time.Second, Err: unavailable("first")}}}, []string{"second"}, false, true},
		{"it fails after partial ones", &pt.ASR{Script: []pt.Hearing{{Partials: []string{"fi"}, Err: unavailable("first")}}}, []string{"fi", "second"}, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.first.Label = "first"
				second := &pt.ASR{Label: "second", Script: []pt.Hearing{ok}}
				texts, final, err := hear(t.Context(), t, newASR(t, tt.first, second), pcm)
				provider := "first"
				if tt.took {
					provider = "second"
				}
				if err != nil || !slices.Equal(texts, tt.texts) || final.Rejected != tt.rejected || final.Provider != provider || !final.Final {
					t.Errorf("%q, %+v, %v", texts, final, err)
				}
				heard := second.Utterances()
				if (len(heard) == 1) != tt.took {
					t.Fatalf("the second heard %d utterances", len(heard))
				}
				if tt.took && (heard[0].Samples != len(pcm) || heard[0].Sum != sum || !heard[0].Closed || heard[0].Request.Language != "zh") {
					t.Errorf("the second heard %+v", heard[0])
				}
			})
		})
	}
}

// early fails while sound still comes.
type early struct{ pt.ASR }

func (e *early) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	s, err := e.ASR.Open(ctx, req)
	return earlyStream{s}, err
}

type earlyStream struct{ providers.ASRStream }

func (earlyStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		time.Sleep(400 * time.Millisecond) // the bubble's
		yield(providers.Transcript{}, unavailable("early"))
	}
}

func TestASRFailoverMidSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := &pt.ASR{Label: "second", Script: []pt.Hearing{{Text: "ok"}}}
		texts, _, err := hear(t.Context(), t, newASR(t, &early{}, second), make([]int16, 16000))
		if h := second.Utterances()[0]; err != nil || !slices.Equal(texts, []string{"ok"}) || h.Samples != 16000 || !h.Closed {
			t.Errorf("%q, %v, heard %+v", texts, err, h)
		}
	})
}

func TestASRTotalOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newASR(t, &pt.ASR{Label: "first", Script: []pt.Hearing{{Err: unavailable("first")}}}, &pt.ASR{Label: "second", OpenErr: down("second", providers.Unauthorized)})
		_, _, err := hear(t.Context(), t, a, make([]int16, 16000))
		pt.WantError(t, err, "first", providers.Unauthorized)
		if text := err.Error(); strings.Index(text, "first is down") > strings.Index(text, "second is down") || !strings.Contains(text, "first is down") {
			t.Errorf("error %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := newASR(t, &pt.ASR{OpenErr: unavailable("only")})
		if _, _, err := hear(t.Context(), t, a, make([]int16, 16)); err == nil {
			t.Error("no error")
		}
	})
}

func TestASRHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &pt.ASR{Script: []pt.Hearing{{Hang: true}}}, &pt.ASR{Script: []pt.Hearing{{Hang: true}}}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, _, err := hear(ctx, t, newASR(t, first, second), make([]int16, 16000))
		if err != context.DeadlineExceeded || !first.Utterances()[0].Cancelled || !second.Utterances()[0].Cancelled { //nolint:errorlint // unchanged
			t.Errorf("got %v, the first heard %+v, the second %+v", err, first.Utterances(), second.Utterances())
		}
	})
}

func TestASRBufferLimit(t *testing.T) {
	a := newASR(t, &pt.ASR{})
	s, err := a.Open(t.Context(), providers.ASRRequest{Rate: 100})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(make([]int16, 6500)); err != nil {
		t.Errorf("65 s: %v", err)
	}
	if err := s.Write(make([]int16, 1)); !errors.Is(err, providers.ErrUtteranceFull) {
		t.Errorf("past 65 s: %v", err)
	}
	_ = s.CloseWrite()
	if err := s.Write(nil); !errors.Is(err, providers.ErrUtteranceClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestBreakerStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breaker{}
		step := func(what string, want bool) {
			t.Helper()
			if got := b.allow(); got != want {
				t.Errorf("%s: allowed %v", what, got)
			}
		}
		step("new", true)
		b.failed()
		b.failed()
		step("one failure", true)
		b.succeeded()
		b.failed()
		b.failed()
		step("a success between", true)
		b.failed()
		step("open", false)
		time.Sleep(rest)
		step("half open", true)
		step("half open, the second call", false)
		b.released()
		step("the probe told nothing", true)
		b.failed()
		step("the probe failed", false)
		time.Sleep(rest)
		step("half open again", true)
		time.Sleep(rest)
		step("a probe that never reported", true)
		b.succeeded()
		step("closed", true)
		step("closed for all", true)
		b.failed()
		b.failed()
		b.failed()
		b.released()
		step("open, and a call from before is hung up on", false)
	})
}

// TestHostSwitchedOff: a member whose host takes no connection has failed,
// though the time that ran out has the name of a context's: after three times it
// is left out.
func TestHostSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := &providers.Error{Provider: "off", Op: "transcribe", Kind: providers.Unavailable, Err: &net.OpError{Op: "dial", Err: context.DeadlineExceeded}}
		down := pt.Hearing{Delay: 1400 * time.Millisecond, Err: dial}
		off, backup := &pt.ASR{Script: []pt.Hearing{down, down, down, down, down, down}}, &pt.ASR{}
		a := newASR(t, off, backup)
		for n := range 6 {
			began := time.Now()
			if _, _, err := hear(t.Context(), t, a, make([]int16, 16000)); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); (took > time.Second) != (n < 3) {
				t.Errorf("utterance %d took %v", n, took)
			}
		}
		if asked := len(off.Utterances()); asked != 3 {
			t.Errorf("it was asked %d times", asked)
		}
	})
}

// TestTTSProviderName: every sound names its voice.
func TestTTSProviderName(t *testing.T) {
	first := &pt.TTS{Label: "first", Script: []pt.Speech{{Err: errors.New("down")}}}
	c := newTTS(t, first, &pt.TTS{Label: "second"})
	for sound, err := range c.Synthesize(t.Context(), providers.TTSRequest{Text: "Hello there.", Language: "en"}) {
		if err != nil || sound.Provider != "second" {
			t.Fatalf("%q, %v", sound.Provider, err)
		}
	}
}
