package audio

import "time"

// PreRoll keeps the last stretch of sound, so that an utterance can begin
// before it was recognised as one. It is for one goroutine.
type PreRoll struct {
	ring []int16
	next int  // where the next sample goes
	full bool // the ring has been filled once
}

// NewPreRoll makes a pre-roll of the last d of sound at rate Hz. With a d or a
// rate of zero or less it keeps nothing.
func NewPreRoll(rate int, d time.Duration) *PreRoll {
	return &PreRoll{ring: make([]int16, max(0, Format{Rate: rate, Frame: d}.Samples()))}
}

// Write adds sound and drops what is too old. It copies pcm.
func (r *PreRoll) Write(pcm []int16) {
	if extra := len(pcm) - len(r.ring); extra > 0 {
		pcm = pcm[extra:]
		r.full = true // all of the ring is about to be written
	}
	for len(pcm) > 0 {
		n := copy(r.ring[r.next:], pcm)
		pcm = pcm[n:]
		r.next += n
		if r.next == len(r.ring) {
			r.next, r.full = 0, true
		}
	}
}

// Take returns what was kept, oldest first, in a slice of its own, and empties
// the pre-roll.
func (r *PreRoll) Take() []int16 {
	var out []int16
	if r.full {
		out = append(out, r.ring[r.next:]...)
	}
	out = append(out, r.ring[:r.next]...)
	r.next, r.full = 0, false
	return out
}
