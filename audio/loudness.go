package audio

import (
	"math"
	"time"

	"xiaozhi/audio/internal/dsp"
	"xiaozhi/internal/lru"
)

// The loudness that voices are brought to, and how far.
const (
	targetLoudness = -20.0 // dBFS, the mean power of what is speech
	mostGain       = 12.0  // dB, up or down

	meterBlock  = 20 * time.Millisecond
	meterFloor  = -55.0 // dBFS; what is softer is no speech
	meterGate   = 12.0  // dB below the mean of the rest: what is softer is a pause
	meterBins   = 55    // one dB each
	meterBlocks = 1500  // 30 s; then older sound counts less
	meterSure   = 10    // blocks of speech, 200 ms, until the meter is believed
)

// Meter measures how loud the speech in a stream is: the mean power of those
// pieces of 20 ms that are no pauses. It needs no more than a moment of speech.
// It is a plain value: a copy is a meter of its own. It is for one goroutine.
type Meter struct {
	rate   int
	bins   [meterBins]uint16 // pieces by loudness, from meterFloor up
	blocks int
	sum    int64 // of the squares in the piece that is not whole yet
	n      int
}

// NewMeter makes a meter for sound of that rate in Hz.
func NewMeter(rate int) Meter { return Meter{rate: rate} }

// Add measures pcm.
func (m *Meter) Add(pcm []int16) {
	size := Format{Rate: m.rate, Frame: meterBlock}.Samples()
	for len(pcm) > 0 && size > 0 {
		part := pcm[:min(len(pcm), size-m.n)]
		pcm = pcm[len(part):]
		sum := int64(0)
		for _, v := range part {
			sum += int64(v) * int64(v)
		}
		m.sum += sum
		if m.n += len(part); m.n == size {
			if db := 10 * math.Log10(float64(m.sum)/float64(size)/(1<<30)); db >= meterFloor {
				m.bins[min(int(db-meterFloor), meterBins-1)]++
				m.blocks++
			}
			m.sum, m.n = 0, 0
		}
		if m.blocks >= meterBlocks {
			m.blocks = 0
			for i := range m.bins {
				m.bins[i] /= 2
				m.blocks += int(m.bins[i])
			}
		}
	}
}

// Heard returns the length of the sound that counts, silence left out.
func (m *Meter) Heard() time.Duration { return time.Duration(m.blocks) * meterBlock }

// Loudness returns the loudness of the speech in dBFS; -Inf if there was none.
func (m *Meter) Loudness() float64 {
	return m.mean(m.mean(meterFloor) - meterGate)
}

// mean returns the mean power in dBFS of the pieces that are at least so loud.
func (m *Meter) mean(gate float64) float64 {
	sum, n := 0.0, 0.0
	const dB = 1.2589254117941673 // one dB more, as a factor of power
	power := math.Pow(10, (meterFloor+0.5)/10)
	for i, count := range m.bins {
		if count > 0 && meterFloor+float64(i)+0.5 >= gate {
			sum += float64(count) * power
			n += float64(count)
		}
		power *= dB
	}
	if n == 0 {
		return math.Inf(-1)
	}
	return 10 * math.Log10(sum/n)
}

// Gain returns the gain in dB that brings the speech to the loudness of all
// voices: at most 12 up or down, less after little speech, 0 after none.
func (m *Meter) Gain() float64 {
	if m.blocks == 0 {
		return 0
	}
	gain := max(-mostGain, min(mostGain, targetLoudness-m.Loudness()))
	return gain * min(1, float64(m.blocks)/meterSure)
}

// maxVoices is the number of voices that are remembered.
const maxVoices = 256

// Levels remembers how loud voices are, for all conversations, so that a voice that was heard
// before begins at the right loudness. All methods may be called at the same time.
type Levels struct{ meters *lru.Cache[string, Meter] }

// NewLevels makes an empty memory.
func NewLevels() *Levels { return &Levels{lru.New[string, Meter](maxVoices, 0)} }

// Meter returns a copy of the meter that was kept for a voice, or a new one for
// sound at that rate in Hz.
func (l *Levels) Meter(voice string, rate int) Meter {
	if m, ok := l.meters.Get(voice); ok && m.rate == rate {
		m.sum, m.n = 0, 0
		return m
	}
	return NewMeter(rate)
}

// Keep remembers what m has measured. Of two that measured at the same time the later one counts.
func (l *Levels) Keep(voice string, m Meter) { l.meters.Put(voice, m, 0) }

const (
	levelSlew    = 6.0     // dB in a second, by which the gain moves within a sentence
	limitCeiling = 29204.0 // -1 dBFS: no sample that was made louder is beyond
	limitRelease = 20.0    // dB in a second, by which the limiter lets go
	limitBlock   = 2500 * time.Microsecond
)

// Leveller brings a voice to a loudness: it turns the gain so slowly that it is inaudible, and
// holds peaks down in time. It is for one goroutine, and allocates nothing.
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
