package chain

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

func TestLateRecogniser(t *testing.T) {
	pcm := make([]int16, 16000) // said in a second
	ok := func(text string, after time.Duration) pt.Hearing { return pt.Hearing{Text: text, Delay: after} }
	rejects := pt.Hearing{Text: "noise", Rejected: true}
	tests := []struct {
		name          string
		first, second pt.Hearing
		text          string
		at            time.Duration // from the end of the sound
		asked         bool          // the second
	}{
		{"in time", ok("a", 1499*ms), ok("b", 0), "a", 1499 * ms, false},
		{"late", pt.Hearing{Hang: true}, ok("b", 0), "b", 1500 * ms, true},
		{"late, but before the second", ok("a", 2*time.Second), ok("b", time.Second), "a", 2 * time.Second, true},
		{"late, and the second fails", ok("a", 3*time.Second), pt.Hearing{Err: unavailable("second")}, "a", 3 * time.Second, true},
		{"the second rejects it", ok("a", 3*time.Second), rejects, "a", 3 * time.Second, true},
		{"the second hears nothing", ok("a", 3*time.Second), pt.Hearing{}, "a", 3 * time.Second, true},
		{"the second rejects it, the first fails", pt.Hearing{Delay: 2 * time.Second, Err: unavailable("first")}, rejects, "noise", 2 * time.Second, true},
		{"the second rejects it, the first hangs", pt.Hearing{Hang: true}, rejects, "noise", 4500 * ms, true},
		{"the first rejects it late", pt.Hearing{Text: "noise", Rejected: true, Delay: 2 * time.Second}, ok("b", time.Second), "b", 2500 * ms, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := &pt.ASR{Label: "first", Script: []pt.Hearing{tt.first}}, &pt.ASR{Label: "second", Script: []pt.Hearing{tt.second}}
				start := time.Now()
				texts, final, err := hear(t.Context(), t, newASR(t, first, second), pcm)
				if took := time.Since(start) - time.Second; err != nil || !slices.Equal(texts, []string{tt.text}) || !final.Final || took != tt.at {
					t.Errorf("%q %+v after %v, want %q after %v (%v)", texts, final, took, tt.text, tt.at, err)
				}
				synctest.Wait()
				heard := slices.Concat(first.Utterances(), second.Utterances())
				if (len(heard) == 2) != tt.asked {
					t.Errorf("%d were asked", len(heard))
				}
				for _, h := range heard {
					if h.Samples != len(pcm) || !h.Closed || !h.Final && !h.Cancelled && tt.first.Err == nil && tt.second.Err == nil {
						t.Errorf("heard %+v", h)
					}
				}
			})
		})
	}
}

func TestLateRecogniserAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newASR(t, &pt.ASR{Script: []pt.Hearing{{Text: "a", Delay: 25 * time.Second}}})
		if texts, _, err := hear(t.Context(), t, a, make([]int16, 16000)); err != nil || !slices.Equal(texts, []string{"a"}) {
			t.Errorf("%q, %v", texts, err)
		}
	})
}

// TestLongSpeechIsNotLate speaks for longer than any recogniser may think.
func TestLongSpeechIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := &pt.ASR{}
		s, err := newASR(t, &pt.ASR{Script: []pt.Hearing{{Text: "a"}}}, second).Open(t.Context(), providers.ASRRequest{})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(30*time.Second, func() { _ = s.CloseWrite() })
		for tr, err := range s.Transcripts() {
			if err != nil || tr.Text != "a" || len(second.Utterances()) != 0 {
				t.Errorf("%+v, %v, the second heard %d", tr, err, len(second.Utterances()))
			}
		}
	})
}

// guesser may give partial texts that count, or such that are guesses.
type guesser struct {
	*pt.ASR
	streams bool
}

func (g guesser) Streams() bool { return g.streams }

// TestGuessesOfTheNext checks that partial texts after a takeover are those of a recogniser
// that streams: whoever listens was told that the first one does.
func TestGuessesOfTheNext(t *testing.T) {
	for streams, want := range map[bool][]string{true: {"a1", "b1", "b"}, false: {"a1", "b"}} {
		synctest.Test(t, func(t *testing.T) {
			a := newASR(t,
				guesser{&pt.ASR{Script: []pt.Hearing{{Partials: []string{"a1"}, Every: 100 * ms, Err: unavailable("first")}}}, true},
				guesser{&pt.ASR{Script: []pt.Hearing{{Partials: []string{"b1"}, Every: 100 * ms, Text: "b"}}}, streams})
			texts, final, err := hear(t.Context(), t, a, make([]int16, 16000))
			if err != nil || !slices.Equal(texts, want) || !final.Final {
				t.Errorf("the next streams %v: %q, %v", streams, texts, err)
			}
		})
	}
}

// TestPartialTextsOfOne checks that two provisional texts are not mixed.
func TestPartialTextsOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newASR(t,
			&pt.ASR{Script: []pt.Hearing{{Partials: []string{"a1", "a2"}, Every: 3 * time.Second, Text: "a"}}},
			&pt.ASR{Script: []pt.Hearing{{Partials: []string{"b1", "b2", "b3"}, Every: 400 * ms, Text: "b"}}})
		texts, _, err := hear(t.Context(), t, a, make([]int16, 16000))
		if err != nil || !slices.Equal(texts, []string{"a1", "b"}) {
			t.Errorf("%q, %v", texts, err)
		}
	})
}

func TestTranscriptsAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newASR(t, &pt.ASR{}, &pt.ASR{}).Open(t.Context(), providers.ASRRequest{})
		if err != nil {
			t.Fatal(err)
		}
		_ = s.CloseWrite()
		for i := range 2 {
			for _, err := range s.Transcripts() {
				if (err != nil) != (i == 1) {
					t.Errorf("loop %d: %v", i, err)
				}
			}
		}
	})
}

// TestASRRandomMembers plays chains of recognisers that understand,
// reject, fail, hang or cannot be opened, at any pace. There is one final
// transcript or one error, and no goroutine is left; an error comes only if
// no member would have understood.
func TestASRRandomMembers(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 11))
			var fakes []*pt.ASR
			var members []providers.ASR
			understood := false
			for range 1 + dice.IntN(4) {
				h := pt.Hearing{Delay: time.Duration(dice.IntN(5)) * 700 * ms}
				a := &pt.ASR{}
				switch dice.IntN(6) {
				case 0:
					h.Err = unavailable("x")
				case 1:
					h.Hang = true
				case 2:
					h.Text, h.Rejected = "noise", true
				case 3:
					a.OpenErr = unavailable("x")
				default:
					h.Text, h.Partials, h.Every = "ok", []string{"o"}, time.Duration(dice.IntN(4))*500*ms
					understood = true
				}
				a.Script = []pt.Hearing{h}
				fakes = append(fakes, a)
				members = append(members, a)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			texts, final, err := hear(ctx, t, newASR(t, members...), make([]int16, 16000))
			if (err == nil) != final.Final || err == nil && final.Text != texts[len(texts)-1] {
				t.Errorf("seed %d: %q, %+v, %v", seed, texts, final, err)
			}
			if understood && err != nil {
				t.Errorf("seed %d: %v, though one of them would have understood", seed, err)
			}
			synctest.Wait()
			for i, a := range fakes {
				for _, h := range a.Utterances() {
					if !h.Final && !h.Cancelled && a.Script[0].Err == nil {
						t.Errorf("seed %d: recogniser %d is still asked: %+v", seed, i, h)
					}
				}
			}
		})
	}
}
