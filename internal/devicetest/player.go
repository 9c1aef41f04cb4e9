package devicetest

import (
	"slices"
	"time"
)

// played is one packet on the model clock of the speaker.
type played struct {
	from, to time.Time
	pcm      []int16
	reply    *Reply
	stamp    uint32  // of the packet
	sound    []int16 // as the microphone may hear it, at 16 kHz
}

// player models the device's playback: a bounded queue of packets and a
// speaker that plays each one as soon as the one before it has ended, at its
// real length (4.3, 4.4). It looks at no clock; the caller says what time it is.
type player struct {
	limit      int  // packets that may wait
	dropOldest bool // full: the oldest waiting packet goes, not the new one
	queue      []played
	ends       time.Time // when all that was taken has been played
}

// waiting returns the number of packets that have not begun to play.
func (p *player) waiting(now time.Time) int {
	n := 0
	for i := len(p.queue) - 1; i >= 0 && p.queue[i].from.After(now); i-- {
		n++
	}
	return n
}

// accept takes a packet. It reports when it will begin to play, and false when
// a packet was lost because the queue was full.
func (p *player) accept(now time.Time, length time.Duration, pcm []int16, reply *Reply) (time.Time, bool) {
	kept := true
	if n := p.waiting(now); n >= p.limit {
		if !p.dropOldest {
			return time.Time{}, false
		}
		p.dropWaiting(len(p.queue) - n)
		kept = false
	}
	from := now
	if p.ends.After(now) {
		from = p.ends
	}
	p.ends = from.Add(length)
	p.queue = append(p.queue, played{from: from, to: p.ends, pcm: pcm, reply: reply})
	return from, kept
}

// dropWaiting removes packet i and moves those behind it forward.
func (p *player) dropWaiting(i int) {
	gone := p.queue[i].to.Sub(p.queue[i].from)
	p.queue = slices.Delete(p.queue, i, i+1)
	for k := i; k < len(p.queue); k++ {
		p.queue[k].from = p.queue[k].from.Add(-gone)
		p.queue[k].to = p.queue[k].to.Add(-gone)
	}
	p.ends = p.ends.Add(-gone)
}

// flush throws away what has not begun to play; it returns how many packets that were.
func (p *player) flush(now time.Time) int {
	n := p.waiting(now)
	p.queue = p.queue[:len(p.queue)-n]
	p.ends = now
	if len(p.queue) > 0 {
		p.ends = p.queue[len(p.queue)-1].to
	}
	return n
}

// take hands over the sound of a reply, in order, and forgets it. What is still
// to be played keeps its place on the clock.
func (p *player) take(reply *Reply) []int16 {
	var pcm []int16
	for i := range p.queue {
		if p.queue[i].reply == reply {
			pcm = append(pcm, p.queue[i].pcm...)
			p.queue[i].pcm = nil
		}
	}
	return pcm
}

// label says what the microphone gets of the packet that was accepted last.
func (p *player) label(stamp uint32, sound []int16) {
	q := &p.queue[len(p.queue)-1]
	q.stamp, q.sound = stamp, sound
}

// trim forgets packets that were played long before now and were taken.
func (p *player) trim(now time.Time) {
	p.queue = slices.DeleteFunc(p.queue, func(q played) bool { return q.pcm == nil && !q.to.After(now) })
}
