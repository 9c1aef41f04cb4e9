package pocketsphinx

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/speechtest"
	"xiaozhi/providers"
)

// paused is what is known of an utterance that ended in silence.
func paused() *past {
	return &past{words: []segment{{word: "stop", frames: 60}}, level: level{quiet: quietFrames}}
}

// soundOf is n samples that differ from those of another seed.
func soundOf(n int, seed int16) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(i)*7 + seed
	}
	return pcm
}

func TestMemoryFind(t *testing.T) {
	var m memory
	short, long := soundOf(1000, 1), soundOf(1500, 1)
	first, second := paused(), paused()
	m.settle(m.keep(short), first)
	m.settle(m.keep(long), second)
	m.settle(m.keep(soundOf(800, 1)), &past{words: []segment{{word: "sto", frames: 40}}, level: level{quiet: quietFrames - 1}}) // in the middle of a word
	m.settle(m.keep(soundOf(900, 1)), nil)                                                                                      // failed
	other := soundOf(2000, 1)
	other[500]++
	for _, c := range []struct {
		name string
		pcm  []int16
		past *past
		n    int
	}{
		{"the longest", soundOf(2000, 1), second, 1500},
		{"only the shorter", soundOf(1200, 1), first, 1000},
		{"the whole of it", short, first, 1000},
		{"not yet as long", soundOf(950, 1), nil, 0},
		{"one sample differs", other, nil, 0},
		{"another voice", soundOf(2000, 2), nil, 0},
		{"nothing", nil, nil, 0},
	} {
		if p, n := m.find(t.Context(), c.pcm); p != c.past || n != c.n {
			t.Errorf("%s: found %v, %d samples, want %d", c.name, p, n, c.n)
		}
	}
	m.clear()
	if p, _ := m.find(t.Context(), long); p != nil {
		t.Error("found after clear")
	}
}

func TestMemoryForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		for seed := range int16(3 * maxHeard) {
			m.settle(m.keep(soundOf(100, seed)), paused())
		}
		if len(m.heard) != maxHeard {
			t.Errorf("%d utterances remembered", len(m.heard))
		}
		time.Sleep(pauseFor + time.Millisecond)
		if p, _ := m.find(t.Context(), soundOf(100, 3*maxHeard-1)); p != nil || len(m.heard) != 0 {
			t.Errorf("%d utterances remembered after %v", len(m.heard), pauseFor)
		}
	})
}

func TestMemoryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		pcm, known := soundOf(100, 1), paused()
		h := m.keep(pcm)
		found := make(chan *past, 1)
		go func() {
			p, _ := m.find(t.Context(), pcm)
			found <- p
		}()
		synctest.Wait()
		if len(found) > 0 {
			t.Fatal("found before it was settled")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if p, _ := m.find(ctx, pcm); p != nil {
			t.Error("found although the context has ended")
		}
		m.settle(h, known)
		if p := <-found; p != known {
			t.Errorf("found %v", p)
		}
	})
}

// TestPauseIsNoEnd asks for the text at a pause and goes on speaking, as a conversation does: what was searched is
// not searched again, and nothing of it is lost.
func TestPauseIsNoEnd(t *testing.T) {
	t.Parallel()
	r := open(t)
	first := promptNamed(t, speechtest.Prompts, "vm-msgsaved")
	second := promptNamed(t, speechtest.Prompts, "vm-advopts")
	begun := inRoom(first.PCM())
	atPause := hear(t, r, begun, nil, "zh")
	whole := slices.Concat(begun, inRoom(second.PCM()))
	s, err := r.Open(t.Context(), providers.ASRRequest{Rate: sampleRate, Language: "zh"})
	if err != nil {
		t.Fatal(err)
	}
	if p, n := r.past.find(t.Context(), whole); p == nil || n != len(begun) {
		t.Fatalf("%d of %d samples are known", n, len(begun))
	}
	if err := s.Write(whole); err != nil {
		t.Fatal(err)
	}
	s.CloseWrite()
	var final providers.Transcript
	for got, err := range s.Transcripts() {
		if err != nil {
			t.Fatal(err)
		}
		final = got
	}
	later, goesOn := strings.CutPrefix(final.Text, atPause.Text+" ")
	if wrong, _ := speechtest.WER(second.Text, later); atPause.Text == "" || !goesOn || wrong > 1 || final.Rejected {
		t.Errorf("heard %+v, want %q and %q", final, atPause.Text, second.Text)
	}
	if p, n := r.past.find(t.Context(), whole); p == nil || n != len(whole) {
		t.Errorf("at the next pause %d of %d samples are known", n, len(whole))
	}
}

// TestPhraseWithPause says a phrase with a pause in it.
func TestPhraseWithPause(t *testing.T) {
	t.Parallel()
	r := open(t)
	one, two := promptNamed(t, speechtest.Commands, "digits/20"), promptNamed(t, speechtest.Commands, "digits/6")
	phrases := []string{"twenty six", "twenty", "sixteen", "stop"}
	begun := inRoom(one.PCM())
	if got := hear(t, r, begun, phrases, "zh"); got.Text != "twenty" {
		t.Fatalf("heard %+v", got)
	}
	s, err := r.Open(t.Context(), providers.ASRRequest{Rate: sampleRate, Language: "zh", Phrases: phrases})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(slices.Concat(begun, inRoom(two.PCM()))); err != nil {
		t.Fatal(err)
	}
	s.CloseWrite()
	for got, err := range s.Transcripts() {
		if err != nil || got.Final && (got.Text != "twenty six" || got.Rejected) {
			t.Errorf("heard %+v, %v", got, err)
		}
	}
}
