package chain

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

const ms = time.Millisecond

// firstSound says when the first sound of a sentence comes, and reads the rest.
func firstSound(ctx context.Context, v providers.TTS) (at time.Duration, last error) {
	start := time.Now()
	at = -1
	for _, err := range v.Synthesize(ctx, providers.TTSRequest{Text: "hello"}) {
		if last = err; at < 0 {
			at = time.Since(start)
		}
	}
	return at, last
}

func TestLateVoice(t *testing.T) {
	tests := []struct {
		name          string
		first, second pt.Speech
		at            time.Duration
		winner        string
	}{
		{"in time", pt.Speech{Delay: 1499 * ms}, pt.Speech{}, 1499 * ms, "first"},
		{"late", pt.Speech{Delay: time.Hour}, pt.Speech{}, 1500 * ms, "second"},
		{"late, but before the second", pt.Speech{Delay: 2 * time.Second}, pt.Speech{Delay: time.Second}, 2 * time.Second, "first"},
		{"late, and after the second", pt.Speech{Delay: 3 * time.Second}, pt.Speech{Delay: time.Second}, 2500 * ms, "second"},
		{"late, and the second fails", pt.Speech{Delay: 3 * time.Second}, pt.Speech{Err: unavailable("second")}, 3 * time.Second, "first"},
		{"late, then it fails", pt.Speech{Delay: 2 * time.Second, Err: unavailable("first")}, pt.Speech{Delay: time.Second}, 2500 * ms, "second"},
		{"late, and the second has nothing to say", pt.Speech{Delay: 3 * time.Second}, pt.Speech{Silent: true}, 3 * time.Second, "first"},
		{"a pause after the first sound is not late", pt.Speech{StallAt: 60 * ms, Stall: 3 * time.Second}, pt.Speech{}, 0, "first"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				voices := map[string]*pt.TTS{"first": {Script: []pt.Speech{tt.first}}, "second": {Script: []pt.Speech{tt.second}}}
				at, err := firstSound(t.Context(), newTTS(t, voices["first"], voices["second"]))
				if at != tt.at || err != nil {
					t.Errorf("the first sound came at %v, want %v (%v)", at, tt.at, err)
				}
				for name, v := range voices {
					for _, s := range v.Spoken() {
						if !s.Ended || (s.Sound == 300*ms) != (name == tt.winner) {
							t.Errorf("%s: %+v; the winner is %s", name, s, tt.winner)
						}
					}
				}
			})
		})
	}
}

func TestTTSLoserClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &pt.TTS{Script: []pt.Speech{{Delay: time.Hour}}}, &pt.TTS{Script: []pt.Speech{{EveryPiece: time.Second}}}
		for _, err := range newTTS(t, first, second).Synthesize(t.Context(), providers.TTSRequest{Text: "hello"}) {
			synctest.Wait()
			if s := first.Spoken()[0]; err != nil || !s.Ended || !s.Cancelled {
				t.Errorf("the loser is still asked: %+v, %v", s, err)
			}
		}
	})
}

func TestLateVoiceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		only := &pt.TTS{Script: []pt.Speech{{Delay: 25 * time.Second}}}
		if at, err := firstSound(t.Context(), newTTS(t, only)); at != 25*time.Second || err != nil || len(only.Spoken()) != 1 {
			t.Errorf("sound at %v, asked %d times, %v", at, len(only.Spoken()), err)
		}
	})
}

func TestPatienceOfVoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := &pt.TTS{Label: "a", Script: []pt.Speech{{Delay: time.Hour}}}, &pt.TTS{Label: "b", Script: []pt.Speech{{Delay: time.Hour}}}, &pt.TTS{}
		v, err := NewTTS([]providers.TTS{a, b, c}, Options{HedgeAfter: map[string]time.Duration{"a": 300 * ms, "b": 4 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		if at, err := firstSound(t.Context(), v); at != 4300*ms || err != nil {
			t.Errorf("sound at %v, %v", at, err)
		}
	})
}

// TestTTSBreaksOff checks what the next member is asked to say.
func TestTTSBreaksOff(t *testing.T) {
	const text = "今天上海多云，最高气温二十八度，傍晚可能有阵雨，出门请带伞。"
	breaks := func(after time.Duration) *pt.TTS {
		return &pt.TTS{Label: "first", Script: []pt.Speech{{PerLetter: 200 * ms, FailAt: after, Err: unavailable("first")}}}
	}
	for _, tt := range []struct {
		after time.Duration
		rest  string
	}{
		{60 * ms, text},
		{600 * ms, text}, // at the third syllable: the clause begins near enough
		{1900 * ms, text},
		{3000 * ms, "最高气温二十八度，傍晚可能有阵雨，出门请带伞。"},
		{4500 * ms, "傍晚可能有阵雨，出门请带伞。"},
	} {
		synctest.Test(t, func(t *testing.T) {
			second := &pt.TTS{Label: "second"}
			v := newTTS(t, breaks(tt.after), second)
			for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: text, Language: "zh", Voice: "x"}) {
				if err != nil {
					t.Error(err)
				}
			}
			got := second.Spoken()[0].Request
			if len(second.Spoken()) != 1 || got.Text != tt.rest || got.Language != "zh" || got.Voice != "x" {
				t.Errorf("after %v the second is asked for %+v, want %q", tt.after, got, tt.rest)
			}
		})
	}
}

// TestTTSRestAfterFailure plays voices that break off one after the other.
func TestTTSRestAfterFailure(t *testing.T) {
	broken := func(name string) *pt.TTS {
		return &pt.TTS{Label: name, Script: []pt.Speech{{FailAt: 60 * ms, Err: unavailable(name)}}}
	}
	asked := func(voices ...*pt.TTS) (n []int) {
		for _, v := range voices {
			n = append(n, len(v.Spoken()))
		}
		return n
	}
	t.Run("nobody else", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := broken("a")
			sound, err := speak(t.Context(), newTTS(t, a))
			pt.WantError(t, err, "a", providers.Unavailable)
			if sound != 60*ms || len(a.Spoken()) != 1 {
				t.Errorf("%v of sound, asked %d times", sound, len(a.Spoken()))
			}
		})
	})
	t.Run("one after the other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b, c := broken("a"), broken("b"), &pt.TTS{}
			sound, err := speak(t.Context(), newTTS(t, a, b, c))
			if n := asked(a, b, c); sound != 420*ms || err != nil || !slices.Equal(n, []int{1, 1, 1}) {
				t.Errorf("%v of sound, %v, asked %v", sound, err, n)
			}
		})
	})
	t.Run("the first was only late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := &pt.TTS{Script: []pt.Speech{{Delay: time.Hour}, {}}}, broken("b")
			sound, err := speak(t.Context(), newTTS(t, a, b))
			if n := asked(a, b); sound != 360*ms || err != nil || !slices.Equal(n, []int{2, 1}) {
				t.Errorf("%v of sound, %v, asked %v", sound, err, n)
			}
		})
	})
	t.Run("all break off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := broken("a"), broken("b")
			_, err := speak(t.Context(), newTTS(t, a, b))
			if err == nil || !strings.Contains(err.Error(), "b is down") {
				t.Errorf("error %v", err)
			}
			if n := asked(a, b); n[0] > 2 || n[1] > 2 {
				t.Errorf("asked %v", n)
			}
		})
	})
}

// reuses is a voice whose pieces share one buffer, as the contract allows.
type reuses struct{ pt.TTS }

func (*reuses) Synthesize(context.Context, providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		pcm := make([]int16, 240)
		for n := range int16(50) {
			for i := range pcm {
				pcm[i] = n
			}
			if !yield(providers.Sound{Rate: 24000, PCM: pcm}, nil) {
				return
			}
		}
	}
}

func TestTTSSoundUntilUsed(t *testing.T) {
	n := int16(0)
	for sound, err := range newTTS(t, &reuses{}).Synthesize(t.Context(), providers.TTSRequest{Text: "x"}) {
		for range 20 {
			if err != nil || slices.Min(sound.PCM) != n || slices.Max(sound.PCM) != n {
				t.Fatalf("piece %d holds %d to %d (%v)", n, slices.Min(sound.PCM), slices.Max(sound.PCM), err)
			}
		}
		n++
	}
	if n != 50 {
		t.Errorf("%d pieces", n)
	}
}

// TestProbeIsOneCallOnly asks an open member after its rest from many sides.
func TestProbeIsOneCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &pt.TTS{Label: "first", Script: []pt.Speech{{Err: unavailable("first")}, {Err: unavailable("first")}, {Err: unavailable("first")}, {Delay: time.Second}, {}}}
		v := newTTS(t, first, &pt.TTS{})
		for range 3 {
			_, _ = speak(t.Context(), v)
		}
		time.Sleep(rest)
		done := make(chan struct{})
		for range 5 {
			go func() {
				_, _ = speak(t.Context(), v)
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		if n := len(first.Spoken()); n != 4 {
			t.Errorf("%d calls while it is half open, want one", n-3)
		}
		for range 5 {
			<-done
		}
		for range 3 { // the probe went well
			_, _ = speak(t.Context(), v)
		}
		if n := len(first.Spoken()); n != 7 {
			t.Errorf("asked %d times after the probe went well, want 3", n-4)
		}
	})
}

// TestTTSRandomMembers plays chains of voices that speak, stall, break off
// and hang. Nobody is left running, and if there is a voice that speaks whole
// sentences, the sentence is heard to its end.
func TestTTSRandomMembers(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 7))
			var voices []*pt.TTS
			var members []providers.TTS
			whole := false
			for range 1 + dice.IntN(4) {
				s := pt.Speech{Delay: time.Duration(dice.IntN(5)) * 700 * ms, PerLetter: 100 * ms, Stall: time.Duration(dice.IntN(3)) * time.Second, StallAt: 120 * ms}
				switch dice.IntN(4) {
				case 0:
					s.Err, s.FailAt = unavailable("x"), time.Duration(dice.IntN(10))*60*ms
				case 1:
					s.Delay = time.Hour
				default:
					whole = true
				}
				voices = append(voices, &pt.TTS{Script: []pt.Speech{s}})
				members = append(members, voices[len(voices)-1])
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			leave := dice.IntN(5) == 0
			var last error
			for _, err := range newTTS(t, members...).Synthesize(ctx, providers.TTSRequest{Text: "one two three"}) {
				if last = err; leave {
					break
				}
			}
			if whole && last != nil && !leave {
				t.Errorf("seed %d: %v, though one of them could speak", seed, last)
			}
			synctest.Wait()
			said := false
			for _, v := range voices {
				for _, s := range v.Spoken() {
					if !s.Ended {
						t.Errorf("seed %d: a request is open", seed)
					}
					said = said || s.Ended && !s.Left && !s.Cancelled && strings.HasSuffix("one two three", s.Request.Text) && s.Sound > 0
				}
			}
			if whole && !said && !leave {
				t.Errorf("seed %d: nobody said the end", seed)
			}
		})
	}
}

// TestTTSSoundAfterCancel ends the turn while a piece is in use: the
// member must not get its buffer back before the consumer is done with it.
func TestTTSSoundAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		inUse := false
		v := newTTS(t, notices{func() {
			if inUse {
				t.Error("the member goes on while its sound is in use")
			}
		}})
		for range v.Synthesize(ctx, providers.TTSRequest{Text: "x"}) {
			inUse = true
			cancel()
			time.Sleep(time.Second) // the bubble's
			inUse = false
		}
	})
}

// notices is a voice that says when it goes on after its first piece.
type notices struct{ on func() }

func (notices) Name() string { return "notices" }

func (n notices) Synthesize(ctx context.Context, _ providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		defer n.on()
		if yield(providers.Sound{Rate: 24000, PCM: make([]int16, 240)}, nil) {
			yield(providers.Sound{}, ctx.Err())
		}
	}
}
