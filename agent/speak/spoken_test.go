package speak

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// sounded returns tenths of a second of a tone.
func sounded(from, tenths int) providers.Sound {
	pcm := make([]int16, 2400*tenths)
	for i := range pcm {
		pcm[i] = int16(9000 * math.Sin(2*math.Pi*440*float64(from*2400+i)/24000))
	}
	return providers.Sound{Rate: 24000, PCM: pcm, Provider: "duplex"}
}

// spokenReply begins to play what comes with its own sound.
func spokenReply(t *testing.T) (*reply, *Spoken) {
	t.Helper()
	o := soundOptions(t, &providertest.TTS{})
	o.Levels = audio.NewLevels()
	r := speakTo(t, &o, newDevice())
	s := NewSpoken(Segment{})
	if err := r.speaker.Say(t.Context(), NewAloud(s)); err != nil {
		t.Fatal(err)
	}
	return r, s
}

// TestSpokenShowsItsWords: words are shown where their sound is taken to be, whenever they
// come, none is lost, and the sound has no seam between them.
func TestSpokenShowsItsWords(t *testing.T) {
	one, two := NewSegment("A sentence of thirty characters.", "en", 0), NewSegment("Then another.", "en", 0)
	for name, give := range map[string]struct {
		do     func(ctx context.Context, s *Spoken)
		lines  []string
		frames int
	}{
		"words first, all at once": {func(ctx context.Context, s *Spoken) {
			s.Caption(one)
			s.Caption(two)
			for i := range 45 {
				_ = s.Add(ctx, sounded(i, 1))
			}
		}, []string{one.Display, two.Display}, 75},
		"words after their sound": {func(ctx context.Context, s *Spoken) {
			_ = s.Add(ctx, sounded(0, 4))
			time.Sleep(300 * time.Millisecond)
			s.Caption(one)
			s.Caption(two)
			for i := range 26 {
				_ = s.Add(ctx, sounded(4+i, 1))
			}
		}, []string{one.Display, two.Display}, 50},
		"words after all sound": {func(ctx context.Context, s *Spoken) {
			_ = s.Add(ctx, sounded(0, 3))
			time.Sleep(200 * time.Millisecond)
			s.Caption(one)
			s.Caption(two)
		}, []string{one.Display + " " + two.Display}, 6},
		"no words": {func(ctx context.Context, s *Spoken) { _ = s.Add(ctx, sounded(0, 6)) }, nil, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, s := spokenReply(t)
				give.do(t.Context(), s)
				s.End(false)
				r.end()
				heard, partial := r.player.Heard(time.Now(), 1)
				want := ""
				if len(give.lines) > 0 {
					want = one.Display + " " + two.Display
				}
				if !slices.Equal(r.dev.lines, give.lines) || heard[0] != want || partial || r.dev.silence != 0 || len(r.dev.packets) != give.frames {
					t.Errorf("%q, heard %q, partial %v, %v of silence, %d frames", r.dev.lines, heard, partial, r.dev.silence, len(r.dev.packets))
				}
				if pcm := r.dev.hear(t); name == "words first, all at once" { // the tone goes on where the words change
					for i := 24000; i < 4*24000; i += 240 {
						if slices.Max(pcm[i:i+240]) < 3000 {
							t.Fatalf("silence at %v", time.Duration(i)*time.Second/24000)
						}
					}
				}
			})
		})
	}
}

// TestSpokenIsCut: what was heard of the sound is known, beside a phrase in front of it.
func TestSpokenIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := soundOptions(t, &providertest.TTS{Script: []providertest.Speech{{Length: time.Second}}})
		r := speakTo(t, &o, newDevice())
		r.say("Wait.")
		s := NewSpoken(Segment{})
		_ = r.speaker.Say(t.Context(), NewAloud(s))
		s.Caption(NewSegment("abcdefghij abcdefghij abcdefghij", "en", 0))
		ctx, cancel := context.WithCancel(t.Context())
		r.over.Go(func() {
			for i := 0; s.Add(ctx, sounded(i, 1)) == nil; i++ { // it does not end
			}
		})
		time.Sleep(105*time.Millisecond + 1200*time.Millisecond + 1020*time.Millisecond) // the first has a frame that is filled up
		r.player.Cut()
		cancel()
		r.cancel()
		r.over.Wait()
		now := time.Now()
		heard, partial := r.player.Heard(now, 1)
		if got := r.player.HeardAloud(now); got < 800*time.Millisecond || got > 1300*time.Millisecond || !partial || len(heard[0]) < 5 || len(heard[0]) > 30 {
			t.Errorf("%v of it were heard, %q, partial %v", got, heard, partial)
		}
		if s.waiting > mostSpoken+time.Second {
			t.Errorf("%v wait", s.waiting)
		}
	})
}

// TestSpokenBreaks: words whose sound never came are neither shown nor counted as heard.
func TestSpokenBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := spokenReply(t)
		s.Caption(NewSegment("It is ten.", "en", 0))
		s.Caption(NewSegment("And this was never said.", "en", 0))
		_ = s.Add(t.Context(), sounded(0, 6))
		s.End(true)
		s.End(false)
		r.end()
		if heard, _ := r.player.Heard(time.Now(), 1); heard[0] != "It is ten." || !slices.Equal(r.dev.lines, heard) {
			t.Errorf("%q, heard %q", r.dev.lines, heard)
		}
	})
}

// TestSpokenPace: words change by the pace of the language as long as the end is not known, and
// in proportion to the sound then.
func TestSpokenPace(t *testing.T) {
	for _, ends := range []bool{false, true} {
		s := NewSpoken(Segment{})
		s.Caption(NewSegment("aaaaaaaaaa", "en", 0)) // 700 ms by pace
		s.Caption(NewSegment("bbbbbbbbbb", "en", 0))
		for i := range 40 {
			_ = s.Add(t.Context(), sounded(i, 1))
		}
		if ends {
			s.End(false)
		}
		var changes []string
		for i := range 40 {
			if _, begins, ok, err := s.next(t.Context()); begins != nil {
				changes = append(changes, fmt.Sprint(i, begins.Display[:1], ok, err))
			}
		}
		want := map[bool]string{false: "[0atrue <nil> 7btrue <nil>]", true: "[0atrue <nil> 20btrue <nil>]"}[ends]
		if fmt.Sprint(changes) != want {
			t.Errorf("ends %v: %v, want %s", ends, changes, want)
		}
	}
}
