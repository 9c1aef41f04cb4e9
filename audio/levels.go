package audio

import "sync"

// maxVoices is the number of voices that are remembered.
const maxVoices = 256

// Levels remembers how loud voices are, so that a voice that was heard before
// begins at the right loudness. All methods may be called at the same time.
// One is shared by all conversations.
type Levels struct {
	mu     sync.Mutex
	meters map[string]Meter
}

// NewLevels makes an empty memory.
func NewLevels() *Levels { return &Levels{meters: map[string]Meter{}} }

// Meter returns a copy of the meter that was kept for a voice, or a new one for
// sound at that rate in Hz.
func (l *Levels) Meter(voice string, rate int) Meter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m, ok := l.meters[voice]; ok && m.rate == rate {
		m.sum, m.n = 0, 0
		return m
	}
	return NewMeter(rate)
}

// Keep remembers what m has measured. Of two that measured at the same time the
// later one counts. When there are too many voices, all but this are forgotten:
// they are learned again within a sentence.
func (l *Levels) Keep(voice string, m Meter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.meters[voice]; !ok && len(l.meters) >= maxVoices {
		clear(l.meters)
	}
	l.meters[voice] = m
}
