package providertest

import (
	"context"
	"maps"
	"testing"
	"time"
	"unicode/utf8"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
)

// TestVoiceContract holds a client of a service that speaks against its fake, through
// every fault that the fake knows.
func TestVoiceContract(t *testing.T, c Case) {
	t.Helper()
	t.Attr(rowsOf, "voice")
	c.Skip = maps.Clone(c.Skip)
	if c.Skip == nil {
		c.Skip = map[servicetest.Fault]string{}
	}
	for _, f := range []servicetest.Fault{servicetest.Late, servicetest.Ends} {
		c.Skip[f] = "it is of recognisers"
	}
	c.each(t, func(tr *trial) {
		v := tr.voice()
		for range map[bool]int{false: 1, true: 3}[tr.f == servicetest.Stale || tr.f == servicetest.None] {
			tr.judgeSound(tr.say(tr.Context(), v, tr.c.words(), nil))
		}
		if tr.f == servicetest.None && tr.c.Reuses && tr.fake.Conns() > 1 {
			tr.Errorf("%d connections for three sentences", tr.fake.Conns())
		}
	})
	t.Run("nothing to say", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			for _, text := range []string{"", " ", "。", "!?"} {
				if pieces, d, err := tr.say(tr.Context(), tr.voice(), text, nil); err != nil || pieces > 0 && text == "" {
					tr.Errorf("%q: %v of sound, error %v", text, d, err)
				}
			}
		})
	})
	for name, early := range map[string]bool{"before": true, "in the middle": false} {
		t.Run("cancelled "+name, func(t *testing.T) {
			t.Parallel()
			f := servicetest.None
			if probe := c.Fake(t); !early && probe.Knows(servicetest.Slow) {
				f = servicetest.Slow
			}
			c.try(t, f, func(tr *trial) { tr.cancelTTS(early) })
		})
	}
	otherSentences(t, c)
}

// otherSentences leaves one half said, and speaks several at once.
func otherSentences(t *testing.T, c Case) {
	t.Helper()
	t.Run("the loop is left", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			v := tr.voice()
			for range v.Synthesize(tr.Context(), tr.request(c.words())) {
				break
			}
			tr.judgeSound(tr.say(tr.Context(), v, c.words(), nil))
		})
	})
	t.Run("many at once", func(t *testing.T) {
		t.Parallel()
		c.try(t, servicetest.None, func(tr *trial) {
			v := tr.voice()
			done := make(chan error)
			for range 3 {
				go func() {
					_, d, err := tr.say(tr.Context(), v, c.words(), nil)
					if err == nil && d < tr.expected()/2 {
						tr.Errorf("only %v of sound", d)
					}
					done <- err
				}()
			}
			for range 3 {
				if err := <-done; err != nil {
					tr.Error(err)
				}
			}
		})
	})
}

func (tr *trial) voice() providers.TTS {
	tr.Helper()
	v, err := tr.c.Kind.TTS(tr.section())
	if err != nil {
		tr.Fatal(err)
	}
	return v
}

func (tr *trial) request(words string) providers.TTSRequest {
	return providers.TTSRequest{Text: words, Language: "zh"}
}

// expected is the length of the fake's sound.
func (tr *trial) expected() time.Duration {
	return time.Duration(utf8.RuneCountInString(tr.c.words())) * servicetest.PerRune
}

// judgeSound looks at what came of a sentence under a fault.
func (tr *trial) judgeSound(pieces int, d time.Duration, err error) {
	tr.Helper()
	switch _, fails := usual(tr.f); {
	case fails:
		tr.wantKind(err)
	case err != nil:
		tr.Error(err)
	case d < tr.expected()*3/4 || d > tr.expected()*3/2+200*time.Millisecond:
		tr.Errorf("%v of sound in %d pieces, want %v", d, pieces, tr.expected())
	case pieces < 2 && !tr.c.Uploads:
		tr.Error("the sound came in one piece")
	}
}

// say speaks a sentence, calls at each piece, and gives how many there were, and how long.
func (tr *trial) say(ctx context.Context, v providers.TTS, words string, each func()) (pieces int, d time.Duration, err error) {
	for sound, failed := range v.Synthesize(ctx, tr.request(words)) {
		switch {
		case failed != nil:
			err = failed
		case len(sound.Packets) > 0:
			d += time.Duration(len(sound.Packets)) * 60 * time.Millisecond
		case sound.Rate > 0:
			d += time.Duration(len(sound.PCM)) * time.Second / time.Duration(sound.Rate)
		default:
			tr.Errorf("a piece without a rate")
		}
		if failed == nil {
			pieces++
		}
		if each != nil {
			each()
		}
	}
	return pieces, d, err
}

// cancelTTS ends the context before, or at the first piece of sound.
func (tr *trial) cancelTTS(early bool) {
	ctx, cancel := context.WithCancel(tr.Context())
	defer cancel()
	v := tr.voice()
	var begun time.Time
	if early {
		cancel()
	}
	_, _, err := tr.say(ctx, v, tr.c.words(), func() {
		if begun.IsZero() {
			begun = time.Now()
			cancel()
		}
	})
	if err == nil {
		if early {
			tr.Error("a cancelled sentence was spoken")
		}
		return // all of it had come
	}
	tr.errs = append(tr.errs, err)
	took := time.Duration(0)
	if !begun.IsZero() {
		took = time.Since(begun)
	}
	tr.cancelled(err, took)
}
