package audio

// Where the canceller puts the echo in its filter, and what it takes for one.
const (
	echoFront     = 320     // samples: how early the filter begins before the strongest echo
	echoFrame     = 960     // samples that are handled together: a frame of 60 ms
	echoFarJump   = 4800    // samples: a timestamp so far off the running alignment is believed at once
	echoSilence   = 12 * 12 // mean power below which the reference is silence
	echoHang      = 30      // hops for which an echo may go on after the reference, 300 ms
	settleFrames  = 8       // loud frames in which the known way is looked for
	patienceFirst = 20      // loud frames until the search for the delay is given up
	worseEcho     = 1.2     // so much louder a hop gets only by a filter that is wrong
	judgeStep     = 0.02    // of the powers by which the filter is judged, per hop: half a second
)

// EchoCanceller takes out of a microphone's sound what the loudspeaker beside
// it plays, for devices that do not do so themselves but say with each frame
// which packet they have just played (device-protocol 4.5). All sound is 16 kHz
// mono. It knows no clock, allocates nothing once made, needs about 230 KiB,
// and is for one goroutine.
type EchoCanceller struct {
	track    echoTrack
	delay    *echoDelay
	filter   *echoFilter
	suppress *echoSuppressor

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

	window  echoWindow
	mic     echoBlock
	rest    echoBlock
	echo    echoBlock
	out     echoBlock
	unsure  echoPower
	scratch [512*delayStep + delayTaps]float32
}

// EchoLatency is by how many samples Cancel's sound is late: 10 ms.
const EchoLatency = echoHop

// NewEchoCanceller makes a canceller that knows nothing of the room.
func NewEchoCanceller() *EchoCanceller {
	f := newFFT(echoFFT)
	c := &EchoCanceller{delay: newEchoDelay(), filter: &echoFilter{fft: f}, suppress: newEchoSuppressor(f)}
	c.track.fence = -1
	c.filter.reset()
	return c
}

// Played says what a packet sounds like that was sent to the loudspeaker with
// that timestamp: best as decoded from the packet, since the device hears the
// codec too. Packets come in the order of playing, before the microphone's
// frames that hear them. What is more than 2 s behind is forgotten.
func (c *EchoCanceller) Played(stamp uint32, pcm []int16) {
	if !c.aligned {
		c.track.fenceOff()
	}
	c.track.add(stamp, pcm)
}

// Cancel takes the echo out of a microphone frame of whole 10 ms, in place.
// stamp is the packet that had just been played, 0 if the device knows none:
// then the reference goes on where it was. The sound that comes out is
// EchoLatency samples late, always; where nothing is played it is otherwise as
// it was. Samples beyond whole 10 ms stay as they are.
func (c *EchoCanceller) Cancel(stamp uint32, mic []int16) {
	c.align(stamp, mic)
	for len(mic) >= echoHop {
		n := min(len(mic)-len(mic)%echoHop, echoFrame)
		c.frame(mic[:n])
		mic = mic[n:]
	}
}

// Reset forgets what was played and where in it we are, as after a break in the
// microphone's sound. What is known of the room stays.
func (c *EchoCanceller) Reset() {
	c.track.reset()
	c.delay.reset()
	c.aligned, c.stamped, c.hang = false, false, 0
}

// frame handles at most 60 ms.
func (c *EchoCanceller) frame(mic []int16) {
	if c.aligned || c.hang > 0 {
		if c.delay.hear(&c.track, c.at, mic, c.scratch[:]) {
			c.frames++
			c.settle(mic)
		}
	}
	for len(mic) > 0 {
		c.hop(mic[:echoHop])
		mic = mic[echoHop:]
	}
	if c.at >= c.track.end() {
		c.aligned = false
	}
}

// hop handles 10 ms.
func (c *EchoCanceller) hop(mic []int16) {
	for i, v := range mic {
		c.mic[i] = float32(v)
	}
	if !c.aligned && c.hang <= 0 {
		c.suppress.pass(&c.mic, &c.out)
	} else {
		c.cancel()
	}
	for i, v := range c.out {
		mic[i] = round16(v)
	}
}

// cancel handles 10 ms that may hold an echo.
func (c *EchoCanceller) cancel() {
	c.track.read(c.window[:], c.place()+echoHop-echoFFT)
	c.filter.hear(&c.window)
	c.at += echoHop
	loud := c.filter.loudest() > echoSilence
	if c.hang--; loud {
		c.hang = echoHang
	}
	if c.hang <= 0 {
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
	c.filter.doubted(&c.unsure, c.settled, c.located)
	if rest > worseEcho*mic {
		c.rest = c.mic
	}
	c.suppress.suppress(&c.rest, &c.echo, &c.unsure, &c.out)
}

// judge begins to learn anew if the filter makes things worse.
func (c *EchoCanceller) judge(rest, mic float32) {
	c.restPower += judgeStep * (rest - c.restPower)
	c.micPower += judgeStep * (mic - c.micPower)
	if c.restPower > 2*c.micPower {
		c.filter.reset()
		c.restPower, c.micPower = 0, 0
	}
}

// place is where in the track the filter's first tap hears the next sample.
func (c *EchoCanceller) place() int64 { return c.at - c.lag + echoFront }
