package providertest

import (
	"fmt"
	"sync"

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
