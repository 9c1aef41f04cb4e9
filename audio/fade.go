package audio

import (
	"math"
	"time"

	"xiaozhi/audio/internal/dsp"
)

// fadeLength is the length of a smoothed edge: short enough to keep a consonant,
// long enough to turn a step into silence without a click.
const fadeLength = 5 * time.Millisecond

const (
	// softest is the smallest step from or to silence that is heard as a click (-46 dBFS).
	softest = 160
	// edgeSamples is the number of samples that show the slope of sound at its edge.
	edgeSamples = 8
)

// FadeSamples returns the length of an edge in samples, at that rate in Hz.
func FadeSamples(rate int) int { return Format{Rate: rate, Frame: fadeLength}.Samples() }

// FadeIn lets pcm begin from silence, in place, if it begins abruptly. What
// begins softly is left as it is.
func FadeIn(pcm []int16, rate int) {
	if len(pcm) == 0 || !isAbrupt(pcm[0], pcm[:min(edgeSamples, len(pcm))]) {
		return
	}
	n := min(FadeSamples(rate), len(pcm))
	for i := range pcm[:n] {
		pcm[i] = dsp.Round(float32(pcm[i]) * (1 - fall(i, n)))
	}
}

// RampOut fills dst with a ramp from last, the sample before it, down to zero.
func RampOut(dst []int16, last int16) {
	for i := range dst {
		dst[i] = dsp.Round(float32(last) * fall(i, len(dst)))
	}
}

// EndsAbruptly reports whether silence after pcm would be a click, so that it
// needs a [RampOut]. Its last few samples are enough.
func EndsAbruptly(pcm []int16) bool {
	if len(pcm) == 0 {
		return false
	}
	return isAbrupt(pcm[len(pcm)-1], pcm[max(0, len(pcm)-edgeSamples):])
}

// isAbrupt reports whether the step between v and silence is a click: large, and
// larger than the steps of the sound beside it.
func isAbrupt(v int16, beside []int16) bool {
	size := max(int(v), -int(v))
	steepest := 0
	for i := 1; i < len(beside); i++ {
		steepest = max(steepest, int(beside[i])-int(beside[i-1]), int(beside[i-1])-int(beside[i]))
	}
	return size >= softest && size > 2*steepest
}

// fall goes from nearly 1 to nearly 0 over n steps, as half a cosine.
func fall(i, n int) float32 {
	return float32(0.5 + 0.5*math.Cos(math.Pi*(float64(i)+0.5)/float64(n)))
}
