package echo

import "xiaozhi/audio/internal/dsp"

// Where the canceller puts the echo in its filter, and what it takes for one.
const (
	front         = 320     // samples: how early the filter begins before the strongest echo
	frameSize     = 960     // samples that are handled together: a frame of 60 ms
	farJump       = 4800    // samples: a timestamp so far off the running alignment is believed at once
	silentPower   = 12 * 12 // mean power below which the reference is silence
	hangHops      = 30      // hops for which an echo may go on after the reference, 300 ms
	settleFrames  = 8       // loud frames in which the known way is looked for
	patienceFirst = 20      // loud frames until the search for the delay is given up
	worseEcho     = 1.2     // so much louder a hop gets only by a filter that is wrong
	judgeStep     = 0.02    // of the powers by which the filter is judged, per hop: half a second
)

// Canceller takes out of a microphone's sound what the loudspeaker beside
// it plays, for devices that do not do so themselves but say with each frame
// which packet they have just played (device-protocol 4.5). All sound is 16 kHz
// mono. It knows no clock, allocates nothing once made, needs about 230 KiB,
// and is for one goroutine.
type Canceller struct {
	track    reference
	delay    *delayFinder
	filter   *filter
	suppress *suppressor

	stamped bool  // the frame before had a timestamp that is known
	aligned bool  // the reference runs along
	at      int64 // the place in the track that belongs to the next microphone sample
	drift   int64 // how far from it the timestamps are, which is known to mean nothing
	lag     int64 // samples by which its echo is later than that
	glimpse int64 // the last delay that was seen
	located bool  // lag was found
	settled bool  // and the filter may learn at it
	sought  int   // loud frames until then
	frames  int   // loud frames since the stretch of sound began
	strayed int   // frames in a row whose echo seems to be elsewhere
	wary    int   // frames in which a misfit is taken for a delay
	hang    int   // hops until an echo has certainly ended

	restPower, micPower float32 // of a hop, without and with the echo, smoothed

	window  window
	mic     block
	rest    block
	echo    block
	out     block
	unsure  power
	scratch [512*delayStep + delayTaps]float32
}

// Latency is by how many samples Cancel's sound is late: 10 ms.
const Latency = hopSize

// NewCanceller makes a canceller that knows nothing of the room.
func NewCanceller() *Canceller {
	f := dsp.NewFFT(fftSize)
	c := &Canceller{delay: newDelayFinder(), filter: &filter{fft: f}, suppress: newSuppressor(f)}
	c.track.fence = -1
	c.filter.reset()
	return c
}

// Played says what a packet sounds like that was sent to the loudspeaker with
// that timestamp: best as decoded from the packet, since the device hears the
// codec too. Packets come in the order of playing, before the microphone's
// frames that hear them. What is more than 2 s behind is forgotten.
func (c *Canceller) Played(stamp uint32, pcm []int16) {
	if !c.aligned {
		c.track.fenceOff()
	}
	c.track.add(stamp, pcm)
}

// Cancel takes the echo out of a microphone frame of whole 10 ms, in place.
// stamp is the packet that had just been played, 0 if the device knows none:
// then the reference goes on where it was. The sound that comes out is
// Latency samples late, always; where nothing is played it is otherwise as
// it was. Samples beyond whole 10 ms stay as they are.
func (c *Canceller) Cancel(stamp uint32, mic []int16) {
	c.align(stamp, mic)
	for len(mic) >= hopSize {
		n := min(len(mic)-len(mic)%hopSize, frameSize)
		c.frame(mic[:n])
		mic = mic[n:]
	}
}

// Reset forgets what was played and where in it we are, as after a break in the
// microphone's sound. What is known of the room stays.
func (c *Canceller) Reset() {
	c.track.reset()
	c.delay.reset()
	c.aligned, c.stamped, c.hang = false, false, 0
}

// frame handles at most 60 ms.
func (c *Canceller) frame(mic []int16) {
	if c.aligned || c.hang > 0 {
		if c.delay.hear(&c.track, c.at, mic, c.scratch[:]) {
			c.frames++
			c.settle(mic)
		}
	}
	for len(mic) > 0 {
		c.hop(mic[:hopSize])
		mic = mic[hopSize:]
	}
	if c.at >= c.track.end() {
		c.aligned = false
	}
}

// hop handles 10 ms.
func (c *Canceller) hop(mic []int16) {
	for i, v := range mic {
		c.mic[i] = float32(v)
	}
	if !c.aligned && c.hang <= 0 {
		c.suppress.pass(&c.mic, &c.out)
	} else {
		c.cancel()
	}
	for i, v := range c.out {
		mic[i] = dsp.Round(v)
	}
}

// cancel handles 10 ms that may hold an echo.
func (c *Canceller) cancel() {
	c.track.read(c.window[:], c.place()+hopSize-fftSize)
	c.filter.hear(&c.window)
	c.at += hopSize
	loud := c.filter.loudest() > silentPower
	if c.hang--; loud {
		c.hang = hangHops
	}
	if c.hang <= 0 || !c.located && !c.settled {
		// Nothing plays, or nothing is known of the echo yet, nor whether there is
		// any: what somebody says meanwhile must not be lost.
		c.suppress.pass(&c.mic, &c.out)
		return
	}
	c.filter.predict(&c.echo)
	var rest, mic float32
	for i, v := range c.mic {
		c.rest[i] = v - c.echo[i]
		mic += v * v
		rest += c.rest[i] * c.rest[i]
	}
	if loud && c.settled {
		c.filter.learn(&c.rest)
		c.judge(rest, mic)
	}
	c.filter.doubted(&c.unsure, c.settled)
	if rest > worseEcho*mic {
		c.rest = c.mic
	}
	c.suppress.suppress(&c.rest, &c.echo, &c.unsure, &c.out)
}

// judge begins to learn anew if the filter makes things worse.
func (c *Canceller) judge(rest, mic float32) {
	c.restPower += judgeStep * (rest - c.restPower)
	c.micPower += judgeStep * (mic - c.micPower)
	if c.restPower > 2*c.micPower {
		c.filter.reset()
		c.restPower, c.micPower = 0, 0
	}
}

// place is where in the track the filter's first tap hears the next sample.
func (c *Canceller) place() int64 { return c.at - c.lag + front }
