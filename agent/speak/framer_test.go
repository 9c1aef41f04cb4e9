package speak

import (
	"errors"
	"math"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/scene"
)

// cutUp is what a framer makes of pieces of one sentence.
func cutUp(t *testing.T, f *framer, pieces ...[]int16) []int16 {
	t.Helper()
	var out []int16
	emit := func(frame []int16) error {
		if len(frame) != f.reply.Samples() {
			t.Errorf("a frame of %d samples", len(frame))
		}
		out = append(out, frame...)
		return nil
	}
	rates := []int{24000, 16000, 22050}
	for i, p := range pieces {
		if err := f.write(p, rates[i%len(rates)], emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.finish(emit); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFramerLosesNothing: whatever the rates of its pieces, a sentence is as
// long as they are, filled up to whole frames.
func TestFramerLosesNothing(t *testing.T) {
	f := newFramer(audio.Reply)
	for _, length := range []time.Duration{250, 500, 750, 1000} { // where the voice is silent
		length *= time.Millisecond
		for range 3 { // one sentence after the other
			got := cutUp(t, f, scene.Voiced(24000, length, 9000), scene.Voiced(16000, length, 9000), scene.Voiced(22050, length, 9000))
			frames := int((3*length + 59*time.Millisecond) / (60 * time.Millisecond))
			if n := len(got) / 1440; n != frames {
				t.Errorf("3 times %v: %d frames, want %d", length, n, frames)
			}
		}
	}
	if got := cutUp(t, f); len(got) != 0 {
		t.Errorf("%d samples of nothing", len(got))
	}
}

// TestFramerPadsWithSilence: and only the last frame.
func TestFramerPadsWithSilence(t *testing.T) {
	in := scene.Voiced(24000, 500*time.Millisecond, 9000)
	got := cutUp(t, newFramer(audio.Reply), in)
	for i, v := range in {
		if got[i] != v {
			t.Fatalf("sample %d was changed", i)
		}
	}
	for i, v := range got[len(in):] {
		if v != 0 {
			t.Fatalf("sample %d of the padding is %d", i, v)
		}
	}
}

func TestFramerSmoothsEdges(t *testing.T) {
	for _, length := range []time.Duration{600, 601, 630, 659} {
		got := cutUp(t, newFramer(audio.Reply), hum(length*time.Millisecond))
		got = append([]int16{0}, got...)
		if step := worstStep(append(got, 0)); step > 500 {
			t.Errorf("%d ms: a step of %d", length, step)
		}
		if more := len(got) - int(length)*24; more < 0 || more > 2*1440 {
			t.Errorf("%d ms became %d samples", length, len(got))
		}
	}
}

func TestFramerForgetsABrokenSentence(t *testing.T) {
	f := newFramer(audio.Reply)
	broken := errors.New("full")
	if err := f.write(hum(100*time.Millisecond), 24000, func([]int16) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := f.write(hum(10*time.Millisecond), 8001, nil); err == nil {
		t.Error("a rate of 8001 Hz was taken")
	}
	f.reset()
	in := scene.Voiced(24000, 300*time.Millisecond, 9000)
	got := cutUp(t, f, in)
	if len(got) != len(in) || math.Abs(loudness(got)-loudness(in)) > 0.1 {
		t.Errorf("%d samples, want %d: something is left", len(got), len(in))
	}
}
