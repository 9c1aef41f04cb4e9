package providertest

import (
	"slices"
	"sync"
	"testing"

	"xiaozhi/providers"
)

// TestVAD is the suite of voice detectors. speech is 16 kHz, at least a second,
// mostly speech.
func TestVAD(t *testing.T, open func(t *testing.T) providers.VAD, speech []int16) {
	t.Run("speech and silence", func(t *testing.T) {
		v := open(t)
		if loudest := slices.Max(judge(t, v, speech)); loudest < 0.5 {
			t.Errorf("speech is at most %.2f likely to be speech", loudest)
		}
		if loudest := slices.Max(judge(t, v, make([]int16, 16000))); loudest >= 0.5 {
			t.Errorf("silence is %.2f likely to be speech", loudest)
		}
	})
	t.Run("frames of another length", func(t *testing.T) {
		v := open(t)
		d := detectorOf(t, v)
		for _, n := range []int{0, 1, v.FrameSamples() - 1, v.FrameSamples() + 1} {
			if _, err := d.Probability(make([]int16, n)); err == nil {
				t.Errorf("a frame of %d samples was taken", n)
			}
		}
	})
	t.Run("reset begins anew", func(t *testing.T) {
		v := open(t)
		d := detectorOf(t, v)
		first := judgeWith(t, v, d, speech)
		d.Reset()
		if second := judgeWith(t, v, d, speech); !slices.Equal(first, second) {
			t.Error("after a reset the same sound was judged in another way")
		}
	})
	t.Run("detectors know nothing of each other", func(t *testing.T) {
		v := open(t)
		alone := judge(t, v, speech)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if beside := judge(t, v, speech); !slices.Equal(alone, beside) {
					t.Error("beside others the same sound was judged in another way")
				}
			})
		}
		within(t, "four detectors", all.Wait)
	})
}

// judge hears the whole sound with a detector of its own.
func judge(t *testing.T, v providers.VAD, pcm []int16) []float32 {
	t.Helper()
	d, err := v.NewDetector()
	if err != nil {
		t.Errorf("new detector: %v", err)
		return []float32{0}
	}
	defer closeDetector(t, d)
	return judgeWith(t, v, d, pcm)
}

// judgeWith hears the whole frames of the sound.
func judgeWith(t *testing.T, v providers.VAD, d providers.Detector, pcm []int16) []float32 {
	t.Helper()
	var all []float32
	for frame := range slices.Chunk(pcm, v.FrameSamples()) {
		if len(frame) < v.FrameSamples() {
			break
		}
		p, err := d.Probability(frame)
		if err != nil || p < 0 || p > 1 || p != p {
			t.Errorf("probability %v, error %v", p, err)
			return append(all, 0)
		}
		all = append(all, p)
	}
	return all
}

// detectorOf makes a detector that is closed with the test.
func detectorOf(t *testing.T, v providers.VAD) providers.Detector {
	t.Helper()
	d, err := v.NewDetector()
	if err != nil {
		t.Fatalf("new detector: %v", err)
	}
	t.Cleanup(func() { closeDetector(t, d) })
	return d
}

func closeDetector(t *testing.T, d providers.Detector) {
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
