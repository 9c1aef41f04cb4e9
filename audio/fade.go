package audio

import (
	"math"
	"time"
)

// fadeLength is how long an edge is smoothed: short enough to leave a consonant
// what it is, long enough that a step becomes no click.
const fadeLength = 5 * time.Millisecond

// Abrupt is the smallest sample, in size, that is heard as a click when sound
// begins or ends with it (-46 dBFS).
const Abrupt = 160

// FadeSamples is how many samples an edge takes at that rate in Hz.
func FadeSamples(rate int) int { return Format{Rate: rate, Frame: fadeLength}.Samples() }

// FadeIn lets pcm begin from silence, in place, if its first sample is abrupt.
// What begins softly is left as it is.
func FadeIn(pcm []int16, rate int) {
	if len(pcm) == 0 || !isAbrupt(pcm[0]) {
		return
	}
	n := min(FadeSamples(rate), len(pcm))
	for i := range pcm[:n] {
		pcm[i] = round16(float32(pcm[i]) * (1 - fall(i, n)))
	}
}

// RampOut fills dst with a way from last, the sample before it, down to zero.
func RampOut(dst []int16, last int16) {
	for i := range dst {
		dst[i] = round16(float32(last) * fall(i, len(dst)))
	}
}

// EndsAbruptly says whether sound that ends with that sample needs a RampOut.
func EndsAbruptly(last int16) bool { return isAbrupt(last) }

func isAbrupt(v int16) bool { return v >= Abrupt || v <= -Abrupt }

// fall goes from nearly 1 to nearly 0 over n steps, as half a cosine.
func fall(i, n int) float32 {
	return float32(0.5 + 0.5*math.Cos(math.Pi*(float64(i)+0.5)/float64(n)))
}
