package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

func newBox() *box { return &box{began: time.Now(), wake: make(chan struct{})} }

// lines are what a box got, without times.
func lines(b *box) string {
	var out []string
	for _, l := range b.lines {
		text := l.text
		if l.frames != nil {
			text = "frames"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestFloorHeldSaysNothing(t *testing.T) {
	b := newBox()
	f := newFloor(b, 1, audio.Reply, 4)
	f.hold()
	f.send(wire.Message{Kind: wire.MessageSTT})
	f.send(wire.Message{Kind: wire.MessageChunk})
	f.cut()
	f.open()
	f.start()
	f.stop()
	if packet, err := f.encode(make([]int16, 1440)); packet != nil || err != nil {
		t.Error("a turn that was undone still encodes")
	}
	if got := lines(b); got != "" {
		t.Errorf("the device got %q", got)
	}
}

// What was said while the gate was shut comes in its order, what belongs to the
// answer after tts start.
func TestFloorOpenKeepsTheOrder(t *testing.T) {
	b := newBox()
	f := newFloor(b, 1, audio.Reply, 4)
	f.hold()
	f.send(wire.Message{Kind: wire.MessageSTT, Text: "words"})
	f.send(wire.Message{Kind: wire.MessageThought, Text: "one"})
	f.send(wire.Message{Kind: wire.MessageChunk, Text: "Yes."})
	if !f.announce() || f.announce() {
		t.Error("a reply asks for its start once")
	}
	f.send(wire.Message{Kind: wire.MessageThought, Text: "two"})
	f.open()
	if got := lines(b); got != "stt words; thought one" {
		t.Errorf("before the start the device got %q", got)
	}
	f.start()
	if got := lines(b); got != "stt words; thought one; tts start; chunk Yes.; thought two" {
		t.Errorf("the device got %q", got)
	}
}

func TestFloorCutBeforeAFrameHasNoSilentFrame(t *testing.T) {
	b := newBox()
	f := newFloor(b, 1, audio.Reply, 4)
	f.start()
	f.cut()
	f.cut()
	if got := lines(b); got != "tts start; tts stop" {
		t.Errorf("the device got %q", got)
	}
}

func TestFloorHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox()
		f := newFloor(b, 1, audio.Reply, 4)
		f.start()
		say := func(text string, frames int, step int, keep bool) {
			s := newSentence(text, "en")
			s.keep = keep
			u := utterable{sentence: s, step: step, length: new(soundLength)}
			u.length.nanos.Store(int64(time.Duration(frames) * 60 * time.Millisecond))
			u.length.whole.Store(true)
			f.sentenceStart(u)
			for range frames {
				if d := time.Until(f.due(time.Now())); d > 0 {
					time.Sleep(d)
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
		texts, partial := f.heard(time.Now(), 2)
		if texts[0] != "ten frames" || !partial || !strings.HasPrefix("abcdefghijklmnopqrst", texts[1]) || len(texts[1]) < 14 || len(texts[1]) > 18 {
			t.Errorf("heard %q, partial %v", texts, partial)
		}
		time.Sleep(time.Second)
		f.stop()
		if texts, partial = f.heard(time.Now(), 2); texts[1] != "abcdefghijklmnopqrst" || partial {
			t.Errorf("after play-out: heard %q, partial %v", texts, partial)
		}
	})
}

// A frame that was held back on purpose until the reply was cut was not late:
// the replies after it go no further ahead.
func TestFloorCutWhilePausedIsNoLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFloor(newBox(), 1, audio.Reply, 4)
		f.start()
		before := f.pacer.Aim()
		f.pause()
		time.Sleep(400 * time.Millisecond)
		f.cut()
		if !f.frame(nil) {
			t.Error("a floor that is gone still keeps its speaker waiting")
		}
		f.late(400 * time.Millisecond)
		if got := f.pacer.Aim(); got != before {
			t.Errorf("the lead is to be %v, was %v", got, before)
		}
	})
}
