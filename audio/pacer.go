package audio

import (
	"slices"
	"time"
)

const (
	// defaultLead is the number of frames that go ahead of the sound: 240 ms at
	// 60 ms (docs/protocol.md 4.3).
	defaultLead = 4

	steadyLead = 360 * time.Millisecond // the most at the device while sending is punctual
	mostLead   = 600 * time.Millisecond // the most at any time
	leastLead  = 120 * time.Millisecond // what a frame that comes late should still find at the device

	maxGaps = 16

	// calmAfter is the number of frames that take away a part e of the lateness that is
	// remembered: 256 frames of 60 ms halve it in 11 s.
	calmAfter = 256
)

// Pacer says when the next frame of a reply may go to the device, and by a model of the
// device's clock what has been played: a frame begins to play when it is sent or when the one
// before has ended. It reads no clock; times must not run backwards. It is for one goroutine.
//
// The lead is the sound that was sent and not yet played. Frames go at once until it is full,
// then one each time it has sunk to half a frame below its aim (210 to 270 ms for four frames
// of 60 ms). These times stand on the grid of the playing, so lateness does not add up; if the
// device has run dry, the schedule begins again.
//
// While frames leave late ([Pacer.Late]), the lead grows until one that is late again still
// finds 120 ms at the device: to 360 ms after the first, to 600 after others. When sending is
// punctual again it shrinks back within seconds, a little with each frame.
type Pacer struct {
	frame  time.Duration
	lead   int
	jitter time.Duration // how late a frame has left, at most, fading
	again  time.Duration // how late a second one has left, fading

	frames    int       // sent since Reset
	before    int       // sent before the current schedule began; all played
	base      time.Time // when the current schedule began to play
	underruns int
	gaps      []Gap // the first maxGaps of them
	minLead   time.Duration
	paused    bool          // by Pause, and nothing was sent since
	shift     time.Duration // by which frames go later than they would
}

// NewPacer makes a pacer for frames of that length that keeps that many of them
// ahead. A frame of zero or less means 60 ms, a lead of zero or less 4 frames.
func NewPacer(frame time.Duration, lead int) *Pacer {
	if frame <= 0 {
		frame = Reply.Frame
	}
	if lead <= 0 {
		lead = defaultLead
	}
	p := &Pacer{frame: frame, lead: lead}
	p.Reset()
	return p
}

// Due returns the time from which on the next frame may be sent; zero: at once.
func (p *Pacer) Due(now time.Time) time.Time {
	if !p.Started() || p.PlayoutEnd().Before(now) {
		return time.Time{}
	}
	return p.Next().Add(p.shift)
}

// Next returns when the next frame would be sent if frames were not shifted. Something must have been sent.
func (p *Pacer) Next() time.Time { return p.PlayoutEnd().Add(p.frame/2 - p.Aim()) }

// Shift moves the times at which frames go by d, at most half a frame either way: those of many pacers are to fall together,
// or apart. It is called when a schedule has begun, of which the first frames go at once.
func (p *Pacer) Shift(d time.Duration) { p.shift = max(-p.frame/2, min(d, p.frame/2)) }

// Aim returns the lead that is kept now: it swings by half a frame around it.
func (p *Pacer) Aim() time.Duration {
	base := p.length(p.lead)
	if base <= steadyLead {
		base = min(base, steadyLead-p.frame/2)
	}
	once := min(p.jitter+leastLead+p.frame/2, steadyLead-p.frame/2)
	return max(base, once, min(p.again+leastLead+p.frame/2, mostLead-p.frame/2))
}

// Late says that a frame that was at hand left d after it was due, or was seen to be d behind;
// it is remembered for seconds. Waiting for sound that is not made yet is not lateness.
func (p *Pacer) Late(d time.Duration) {
	d = min(d, mostLead)
	p.again = max(p.again, min(d, p.jitter))
	p.jitter = max(p.jitter, d)
}

// Inherit goes on with the lateness that another pacer has seen on the way to the same device.
func (p *Pacer) Inherit(from *Pacer) { p.jitter, p.again = from.jitter, from.again }

// Sent records that a frame was handed over now, and reports whether a schedule begins with it.
func (p *Pacer) Sent(now time.Time) (begins bool) {
	end := p.PlayoutEnd()
	switch {
	case !p.Started():
		p.base = now
	case end.Before(now): // the device has run dry
		if !p.paused {
			p.underruns++
			p.minLead = 0
		}
		if len(p.gaps) < maxGaps {
			p.gaps = append(p.gaps, Gap{Until: now, Played: p.length(p.frames), Paused: p.paused})
		}
		p.base, p.before = now, p.frames
	case p.frames-p.before >= p.lead: // the opening burst is over
		p.minLead = min(p.minLead, end.Sub(now))
	}
	p.paused = false
	p.frames++
	p.jitter -= p.jitter / calmAfter
	p.again -= p.again / calmAfter
	return p.frames-p.before == 1
}

// Gap is a silence between frames: the device had nothing to play.
type Gap struct {
	Until  time.Time     // the next frame was sent
	Played time.Duration // the sound that came before
	Paused bool          // it was wanted
}

// Gaps returns the first gaps.
func (p *Pacer) Gaps() []Gap { return slices.Clone(p.gaps) }

// Pause says that no more frames go for a while on purpose: that the device
// runs dry meanwhile is no underrun.
func (p *Pacer) Pause() { p.paused = true }

// Started reports whether a frame was sent since Reset.
func (p *Pacer) Started() bool { return p.frames > 0 }

// Frames returns the number of frames sent.
func (p *Pacer) Frames() int { return p.frames }

// Underruns returns the number of frames sent after the device had run dry.
func (p *Pacer) Underruns() int { return p.underruns }

// PlayoutEnd returns the time at which the device will have played the last frame
// sent; zero before the first one.
func (p *Pacer) PlayoutEnd() time.Time {
	if !p.Started() {
		return time.Time{}
	}
	return p.base.Add(p.length(p.frames - p.before))
}

// Lead returns the length of the sound that the device still has to play.
func (p *Pacer) Lead(now time.Time) time.Duration {
	if !p.Started() {
		return 0
	}
	return max(0, p.PlayoutEnd().Sub(now))
}

// MinLead returns the smallest lead that a frame met when it was sent after an
// opening burst, 0 after an underrun, and the full lead if there was none yet.
func (p *Pacer) MinLead() time.Duration { return p.minLead }

// Heard returns the length of the sound that has been played, pauses not counted.
// now must not be before the last [Pacer.Sent].
func (p *Pacer) Heard(now time.Time) time.Duration {
	if !p.Started() {
		return 0
	}
	current := min(now.Sub(p.base), p.length(p.frames-p.before))
	return p.length(p.before) + max(0, current)
}

// Played returns the number of frames of which at least a part has been played.
func (p *Pacer) Played(now time.Time) int {
	return int((p.Heard(now) + p.frame - 1) / p.frame)
}

// Reset begins a new reply: nothing sent, nothing counted. The jitter stays known.
func (p *Pacer) Reset() {
	*p = Pacer{frame: p.frame, lead: p.lead, jitter: p.jitter, again: p.again, minLead: p.length(p.lead)}
}

func (p *Pacer) length(frames int) time.Duration {
	return time.Duration(frames) * p.frame
}
