package audio

import (
	"math"
	"time"

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

// Levels remembers how loud voices are, so that a voice that was heard before
// begins at the right loudness. All methods may be called at the same time.
// One is shared by all conversations.
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
