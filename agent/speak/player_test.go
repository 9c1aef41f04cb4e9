package speak

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

func TestPlayerHeldSaysNothing(t *testing.T) {
	b := newDevice()
	f := NewPlayer(b, 1, audio.Reply, audio.Usual(), 4)
	f.Hold()
	f.Send(wire.Message{Kind: wire.MessageSTT})
	f.Send(wire.Message{Kind: wire.MessageChunk})
	f.Cut()
	f.Open()
	f.Start()
	f.Stop()
	if packet, err := f.encode(make([]int16, 1440)); packet != nil || err != nil {
		t.Error("a turn that was undone still encodes")
	}
	if got := strings.Join(b.messages, "; "); got != "" {
		t.Errorf("the device got %q", got)
	}
}

// What was said while the gate was shut comes in its order, what belongs to the
// answer after tts start.
func TestPlayerOpenKeepsTheOrder(t *testing.T) {
	b := newDevice()
	f := NewPlayer(b, 1, audio.Reply, audio.Usual(), 4)
	f.Hold()
	f.Send(wire.Message{Kind: wire.MessageSTT, Text: "words"})
	f.Send(wire.Message{Kind: wire.MessageThought, Text: "one"})
	f.Send(wire.Message{Kind: wire.MessageChunk, Text: "Yes."})
	if f.Announce(true) {
		t.Error("what may be undone asks for its start by a word")
	}
	if !f.Announce(false) || f.Announce(false) {
		t.Error("a reply asks for its start once")
	}
	f.Send(wire.Message{Kind: wire.MessageThought, Text: "two"})
	f.Open()
	if got := strings.Join(b.messages, "; "); got != "stt words; thought one" {
		t.Errorf("before the start the device got %q", got)
	}
	f.Start()
	if got := strings.Join(b.messages, "; "); got != "stt words; thought one; tts start; chunk Yes.; thought two" {
		t.Errorf("the device got %q", got)
	}
}

// A turn is certain when it may be seen, and never if it was undone before.
func TestPlayerCertain(t *testing.T) {
	certain := func(f *Player) bool {
		select {
		case <-f.Certain():
			return true
		default:
			return false
		}
	}
	for name, c := range map[string]struct {
		do   func(*Player)
		want bool
	}{
		"at once": {func(*Player) {}, true},
		"held":    {(*Player).Hold, false},
		"opened":  {func(f *Player) { f.Hold(); f.Open() }, true},
		"undone":  {func(f *Player) { f.Hold(); f.Cut() }, false},
		"started": {func(f *Player) { f.Hold(); f.Start() }, true},
	} {
		f := NewPlayer(newDevice(), 1, audio.Reply, audio.Usual(), 4)
		if c.do(f); certain(f) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
		f.Cut()
	}
}

func TestPlayerCutBeforeFirstFrame(t *testing.T) {
	b := newDevice()
	f := NewPlayer(b, 1, audio.Reply, audio.Usual(), 4)
	f.Start()
	f.Cut()
	f.Cut()
	if got := strings.Join(b.messages, "; "); got != "tts start; tts stop" {
		t.Errorf("the device got %q", got)
	}
}

func TestPlayerHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newDevice()
		f := NewPlayer(b, 1, audio.Reply, audio.Usual(), 4)
		f.Start()
		say := func(text string, frames int, step int, keep bool) {
			u := NewSegment(text, "en", step)
			u.Keep, u.progress = keep, new(progress)
			u.progress.add(time.Duration(frames) * 60 * time.Millisecond)
			u.progress.whole.Store(true)
			f.beginSegment(u)
			for range frames {
				if due, _ := f.due(time.Now(), 0); time.Until(due) > 0 {
					time.Sleep(time.Until(due))
				}
				p, err := f.encode(make([]int16, 1440))
				if err != nil {
					t.Fatal(err)
				}
				f.frame(p)
			}
		}
		say("ten frames", 10, 0, true)
		say("a phrase", 5, 0, false)
		say("abcdefghijklmnopqrst", 20, 1, true)
		// 35 frames were sent; play-out has reached about frame 31.
		texts, partial := f.Heard(time.Now(), 2)
		if texts[0] != "ten frames" || !partial || !strings.HasPrefix("abcdefghijklmnopqrst", texts[1]) || len(texts[1]) < 14 || len(texts[1]) > 18 {
			t.Errorf("heard %q, partial %v", texts, partial)
		}
		time.Sleep(time.Second)
		f.Stop()
		if texts, partial = f.Heard(time.Now(), 2); texts[1] != "abcdefghijklmnopqrst" || partial {
			t.Errorf("after play-out: heard %q, partial %v", texts, partial)
		}
	})
}

// A frame that was held back on purpose until the reply was cut was not late:
// the replies after it go no further ahead.
func TestPlayerCutPausedNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewPlayer(newDevice(), 1, audio.Reply, audio.Usual(), 4)
		f.Start()
		before := f.pacer.Aim()
		f.Pause()
		time.Sleep(400 * time.Millisecond)
		f.Cut()
		if !f.frame(nil) {
			t.Error("a floor that is gone still keeps its speaker waiting")
		}
		f.late(400 * time.Millisecond)
		if got := f.pacer.Aim(); got != before {
			t.Errorf("the lead is to be %v, was %v", got, before)
		}
	})
}
