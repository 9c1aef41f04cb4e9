// Package echo deals with what a device plays and its microphone hears again: a [Canceller] takes
// it out, for devices that say when they play what; a [SelfEcho] recognises it, for all others.
package echo

import (
	"slices"

	"xiaozhi/audio/internal/dsp"
)

const (
	frameSize   = 960     // samples that are handled together: a frame of 60 ms
	silentPower = 12 * 12 // mean power below which the reference is silence
	hangHops    = 30      // hops for which an echo may go on after the reference, 300 ms
	worseEcho   = 1.2     // factor by which a hop gets louder only if the filter is wrong
	judgeStep   = 0.02    // of the powers by which the filter is judged, per hop: half a second
)

// Latency is the delay of the sound that [Canceller.Cancel] returns, in samples: 10 ms.
const Latency = hopSize

// Canceller takes out of a microphone's sound what the loudspeaker beside it plays, for devices
// that send with each frame the timestamp of the packet that they have just played
// (docs/protocol.md 4.5). It joins an aligner, which knows what is heard when, a filter, which
// predicts the echo, and a suppressor, which takes away the rest. All sound is 16 kHz mono. It
// reads no clock, allocates nothing once made, needs about 230 KiB, and is for one goroutine.
type Canceller struct {
	aligner  *aligner
	filter   *filter
	suppress *suppressor
	judge    judge
	hang     int // hops until an echo has certainly ended
	now      hop
}

// hop holds the 10 ms that a [Canceller] works on.
type hop struct {
	window window // of the reference
	mic    block
	echo   block // as predicted
	rest   block // the microphone without it
	unsure power // what of the rest may still be echo
	out    block
}

// NewCanceller makes a canceller that knows nothing of the room.
func NewCanceller() *Canceller {
	fft := dsp.NewFFT(fftSize)
	f := &filter{fft: fft}
	f.reset()
	return &Canceller{aligner: newAligner(f), filter: f, suppress: newSuppressor(fft)}
}

// Played takes in the sound of a packet that was sent with that timestamp, best as decoded from
// it. Packets come in the order of playing, before the microphone's frames that hear them. What
// is more than 2 s old is forgotten.
func (c *Canceller) Played(stamp uint32, pcm []int16) { c.aligner.played(stamp, pcm) }

// Cancel takes the echo out of a microphone frame of whole 10 ms, in place. stamp is that of
// the packet that had just been played, 0 if the device knows none: then the reference goes on
// where it was. The sound comes out [Latency] samples late, always.
func (c *Canceller) Cancel(stamp uint32, mic []int16) {
	c.aligner.align(stamp, mic, c.hang > 0)
	for len(mic) >= hopSize {
		frame := mic[:min(len(mic)-len(mic)%hopSize, frameSize)]
		mic = mic[len(frame):]
		if c.aligner.runs || c.hang > 0 {
			c.aligner.search(frame, c.judge.mic)
		}
		for ; len(frame) > 0; frame = frame[hopSize:] {
			c.hop(frame[:hopSize])
		}
		c.aligner.runs = c.aligner.runs && c.aligner.at < c.aligner.track.end()
	}
}

// Reset forgets what was played and when, as after a break in the microphone's
// sound. What is known of the room stays.
func (c *Canceller) Reset() {
	c.aligner.reset()
	c.hang = 0
}

// hop handles 10 ms.
func (c *Canceller) hop(mic []int16) {
	for i, v := range mic {
		c.now.mic[i] = float32(v)
	}
	if !c.aligner.runs && c.hang <= 0 {
		c.suppress.pass(&c.now.mic, &c.now.out)
	} else {
		c.cancel()
	}
	for i, v := range c.now.out {
		mic[i] = dsp.Round(v)
	}
}

// cancel handles 10 ms that may hold an echo.
func (c *Canceller) cancel() {
	n := &c.now
	c.aligner.next(&n.window)
	c.filter.hear(&n.window)
	loud := slices.Max(c.filter.loud[:]) > silentPower // the loudest hop that is still heard
	if c.hang--; loud {
		c.hang = hangHops
	}
	if c.hang <= 0 || !c.aligner.delay.located && !c.aligner.delay.settled {
		// Nothing plays, or nothing is known of the echo yet, nor whether there is
		// any: what the user says meanwhile must not be lost.
		c.suppress.pass(&n.mic, &n.out)
		return
	}
	c.filter.predict(&n.echo)
	var rest, mic float32
	for i, v := range n.mic {
		n.rest[i] = v - n.echo[i]
		mic += v * v
		rest += n.rest[i] * n.rest[i]
	}
	settled := c.aligner.delay.settled
	if loud && settled {
		c.filter.learn(&n.rest)
		c.judge.rest += judgeStep * (rest - c.judge.rest)
		c.judge.mic += judgeStep * (mic - c.judge.mic)
		if c.judge.rest > 2*c.judge.mic { // the filter makes things worse: it begins anew
			c.judge = judge{}
			c.filter.reset()
		}
	}
	c.filter.doubted(&n.unsure, settled)
	if rest > worseEcho*mic {
		n.rest = n.mic
	}
	c.suppress.suppress(&n.rest, &n.echo, &n.unsure, &n.out)
}

// judge compares the sound without and with the filter, over half a second.
type judge struct {
	rest, mic float32 // power of a hop, without and with the echo, smoothed
}
