package bench

import (
	"slices"
	"time"
)

// burst is the time in which a reply builds up its lead; jitter and lead count afterwards (M4, M5).
const burst = 300 * time.Millisecond

// queueLimit is the number of packets that a device holds (docs/protocol.md 4.3).
const queueLimit = 40

// playout is the arrivals of one reply's packets on the model clock: packet i plays at t0 + i packets, where t0 is
// the first arrival. A packet that comes after its play time is an underrun, and the clock starts anew with it.
type playout struct {
	slack     []time.Duration // play time less arrival, of each packet behind the burst
	underruns int
	overflows int             // packets that met a full queue
	jitter    []time.Duration // |distance of two arrivals - packet|, behind the burst
	ends      time.Time       // when the last packet has been played
}

// play puts arrivals, in order, of packets of one length on the model clock.
func play(arrivals []time.Time, packet time.Duration) playout {
	var p playout
	if len(arrivals) == 0 {
		return p
	}
	settled := arrivals[0].Add(burst)
	p.ends = arrivals[0]
	for i, at := range arrivals {
		slack := p.ends.Sub(at)
		if i > 0 && slack < 0 {
			p.underruns++
			p.ends, settled = at, at.Add(burst)
		}
		if slack > queueLimit*packet {
			p.overflows++
			continue
		}
		p.ends = p.ends.Add(packet)
		if at.Before(settled) {
			continue
		}
		p.slack = append(p.slack, slack)
		p.jitter = append(p.jitter, (at.Sub(arrivals[i-1]) - packet).Abs())
	}
	return p
}

// seams are the gaps that a listener hears between the sentences of a reply: for each sentence after the first, how
// long the speaker was silent before its first packet came. Sentences are the arrivals of their subtitles.
func seams(arrivals, sentences []time.Time, packet time.Duration) []time.Duration {
	var gaps []time.Duration
	if len(arrivals) == 0 || len(sentences) == 0 {
		return nil
	}
	next := 1
	ends := arrivals[0]
	for i, at := range arrivals {
		if i > 0 && next < len(sentences) && !at.Before(sentences[next]) {
			gaps = append(gaps, max(0, at.Sub(ends)))
			next++
		}
		if ends.Before(at) {
			ends = at
		}
		ends = ends.Add(packet)
	}
	return gaps
}

// apart are the distances of neighbours from a packet's length, for arrivals in the middle of a reply.
func apart(arrivals []time.Time, packet time.Duration) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(arrivals); i++ {
		out = append(out, (arrivals[i].Sub(arrivals[i-1]) - packet).Abs())
	}
	return out
}

// cut holds the times of one abort as the device saw them.
type cut struct {
	aborted, stopped time.Time   // abort written, tts stop read
	frames           []time.Time // arrivals
}

// last is from the abort to the last packet that came before the tts stop; 0 if none came.
func (c cut) last() time.Duration {
	var last time.Duration
	for _, at := range c.frames {
		if at.After(c.aborted) && !at.After(c.stopped) {
			last = at.Sub(c.aborted)
		}
	}
	return last
}

// after counts the packets behind the tts stop.
func (c cut) after() int {
	return len(c.frames) - len(slices.DeleteFunc(slices.Clone(c.frames), c.stopped.Before))
}
