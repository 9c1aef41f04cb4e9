package audio

import (
	"math"
	"time"

	"xiaozhi/audio/internal/dsp"
)

const (
	levelSlew    = 6.0     // dB in a second, by which the gain moves within a sentence
	limitCeiling = 29204.0 // -1 dBFS: no sample that was made louder is beyond
	limitRelease = 20.0    // dB in a second, by which the limiter lets go
	limitBlock   = 2500 * time.Microsecond
)

// Leveller brings a voice to a loudness: it turns the gain slowly, so that
// its movement is inaudible, and holds peaks down in time, so that nothing is cut
// off. It is for one goroutine, and allocates nothing.
type Leveller struct {
	rate  int
	gain  float64 // dB; where the last frame ended
	limit float64 // what the limiter left of the last sample, 0 to 1
	fresh bool    // nothing was heard since Begin: the gain may jump
}

// NewLeveller makes a leveller for sound of that rate in Hz.
func NewLeveller(rate int) *Leveller { return &Leveller{rate: rate, limit: 1, fresh: true} }

// Begin says that silence lies before the next frame: a sentence begins.
func (l *Leveller) Begin() { l.fresh = true }

// Apply changes one frame in place. gain is what Meter.Gain says now, in dB.
// Sound that needs neither gain nor limit stays as it is, to the bit.
func (l *Leveller) Apply(pcm []int16, gain float64) {
	if len(pcm) == 0 || l.rate <= 0 {
		return
	}
	if l.fresh {
		l.gain, l.limit = gain, 1
	}
	from := l.gain
	most := levelSlew * float64(len(pcm)) / float64(l.rate)
	l.gain += max(-most, min(most, gain-from))
	if from == 0 && l.gain == 0 && l.limit == 1 {
		l.fresh = false
		return // its peaks are its own
	}
	l.run(pcm, decibels(from), decibels(l.gain))
	l.fresh = false
}

// run multiplies pcm by a gain that goes from one value to another, and by the limiter's.
func (l *Leveller) run(pcm []int16, from, to float64) {
	size := max(1, Format{Rate: l.rate, Frame: limitBlock}.Samples())
	release := decibels(limitRelease * limitBlock.Seconds())
	step := (to - from) / float64(len(pcm))
	loudest := max(from, to)
	if (l.fresh || l.limit == 1) && needed(pcm, loudest) == 1 {
		l.limit = 1
		scale(pcm, from, step)
		return
	}
	need := needed(pcm[:min(size, len(pcm))], loudest)
	if l.fresh {
		l.limit = need
	}
	for at := 0; at < len(pcm); at += size {
		part := pcm[at:min(at+size, len(pcm))]
		next := min(need, l.limit*release)
		if rest := pcm[at+len(part):]; len(rest) > 0 { // peaks are seen one piece ahead
			need = needed(rest[:min(size, len(rest))], loudest)
			next = min(next, need)
		}
		slope := (next - l.limit) / float64(len(part))
		for i, v := range part {
			g := (from + step*float64(at+i)) * (l.limit + slope*float64(i))
			part[i] = dsp.Round(float32(float64(v) * g))
		}
		l.limit = next
	}
}

// scale multiplies pcm by a gain that goes up by step with each sample, where
// nothing has to be limited. It counts in fixed point, of 2^-30 for the gain.
func scale(pcm []int16, gain, step float64) {
	const one = 1 << 30
	g, s := int64(gain*one), int64(step*one)
	for i, v := range pcm {
		pcm[i] = int16((int64(v)*g + one/2) >> 30)
		g += s
	}
}

// needed returns the factor by which the limiter must scale a piece with that gain.
func needed(pcm []int16, gain float64) float64 {
	low, high := 0, 0
	for _, v := range pcm {
		low, high = min(low, int(v)), max(high, int(v))
	}
	peak := float64(max(high, -low))
	if peak*gain <= limitCeiling {
		return 1
	}
	return limitCeiling / (peak * gain)
}

// decibels returns the factor of an amplitude.
func decibels(db float64) float64 { return math.Pow(10, db/20) }
