package providertest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"xiaozhi/providers"
)

// frameSamples is the frame of a fake detector: 32 ms, as Silero's.
const frameSamples = 512

// VAD is a fake voice detector that takes loud frames for speech. The mean
// absolute sample decides: from 1000 on it is speech for certain, at 0 none for
// certain.
type VAD struct {
	mu   sync.Mutex
	open int
}

// NewDetector makes a detector.
func (v *VAD) NewDetector() (providers.Detector, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open++
	return &detector{vad: v}, nil
}

// FrameSamples is 512.
func (v *VAD) FrameSamples() int { return frameSamples }

// Open returns the number of detectors that are not closed.
func (v *VAD) Open() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.open
}

// detector is a fake detector; it has no state but whether it is closed.
type detector struct {
	vad    *VAD
	closed bool
}

// Probability returns the frame's loudness.
func (d *detector) Probability(frame []int16) (float32, error) {
	if d.closed {
		return 0, fmt.Errorf("fake vad: the detector is closed")
	}
	if len(frame) != frameSamples {
		return 0, fmt.Errorf("fake vad: a frame of %d samples, not %d", len(frame), frameSamples)
	}
	sum := 0
	for _, s := range frame {
		sum += max(int(s), -int(s))
	}
	return min(1, float32(sum)/(frameSamples*1000)), nil
}

// Reset does nothing: there is no state.
func (d *detector) Reset() {}

// Close is counted once.
func (d *detector) Close() error {
	d.vad.mu.Lock()
	defer d.vad.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.vad.open--
	}
	return nil
}

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
