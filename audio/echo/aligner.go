package echo

// When an alignment is believed.
const (
	clearPeak   = 7   // prominence of a delay that is taken for one
	waryFrames  = 6   // so long a loudspeaker that has stood still is expected to be late
	knownWay    = 0.5 // a known room leaves at most so much of an echo where it belongs
	betterWay   = 0.7 // and at a better place so much of what it leaves at another
	sameDelay   = 32  // samples by which two looks at one delay may differ
	quietFrame  = 0.5 // of the usual power, which a frame must have to tell anything
	strayFrames = 5   // so long an echo must be elsewhere before the room is another one
)

// align brings the reference to where the timestamp says it is. A timestamp is
// loose: the device takes it from a queue, so that it may be a packet or two
// off, and begin or cease to be so at any time. While the reference runs along,
// the samples count and a timestamp is believed if the filter fares better with
// it, or if it is far off.
func (c *Canceller) align(stamp uint32, mic []int16) {
	from, known := c.track.find(stamp)
	stamped := c.stamped
	c.stamped = known
	switch {
	case stamp == 0 && stamped && len(mic) >= frameSize && c.aligned && c.located && c.at+frameSize < c.track.end():
		// Nothing was played to its end in this frame: the loudspeaker may have
		// stood still, and all that is behind is late.
		c.wary = waryFrames
	case !known:
	case !c.aligned:
		if old := from < c.track.end(); old && c.hang > 0 && near(from, c.at) {
			return // the end of what has just been played
		}
		c.begin(from)
	case !near(from, c.at):
		c.begin(from)
	case from-c.at != c.drift:
		c.reconsider(from-c.at, mic)
	}
}

func near(a, b int64) bool { return a-b < farJump && b-a < farJump }

// begin starts at a place that is known from a timestamp alone.
func (c *Canceller) begin(from int64) {
	c.aligned = c.track.enter(from)
	c.at, c.drift = from, 0
	c.frames, c.strayed = 0, 0
	c.settled = !c.located && c.sought >= patienceFirst
	c.delay.reset()
	c.filter.refill(&c.track, c.place())
}

// reconsider asks the filter what a timestamp means that is newly off: a frame
// that was lost, or a queue that has grown or shrunk.
func (c *Canceller) reconsider(drift int64, mic []int16) {
	moved := c.at + drift - c.drift
	before, here := c.filter.trial(&c.track, c.place(), mic)
	_, there := c.filter.trial(&c.track, c.place()+moved-c.at, mic)
	switch {
	case there < betterWay*here && there < betterWay*before:
		c.at = moved
		c.filter.refill(&c.track, c.place())
	case here < betterWay*there:
		c.drift = drift
	}
}

// settle looks for the echo in a frame in which something is played.
func (c *Canceller) settle(mic []int16) {
	lag, peak := c.delay.find()
	c.wary = max(0, c.wary-1)
	switch {
	case !c.located:
		c.locate(lag, peak, mic)
	case !c.settled:
		c.recover(lag, peak, mic)
	default:
		c.follow(lag, peak, mic)
	}
}

// locate takes the first delay that is clear in two frames. If none becomes so,
// there is little to cancel, and the filter looks for it where it most likely is;
// but not while nothing at all is heard, where nothing is to be cancelled.
func (c *Canceller) locate(lag int64, peak float32, mic []int16) {
	if isLoud(mic) {
		c.sought++
	}
	if c.again(lag) && peak > clearPeak {
		c.located = true
		c.filter.reset()
		c.move(lag)
	} else if c.sought >= patienceFirst {
		c.settled = true
	}
}

// recover finds the known room in a new stretch of sound.
func (c *Canceller) recover(lag int64, peak float32, mic []int16) {
	before, here := c.filter.trial(&c.track, c.place(), mic)
	if here < knownWay*before {
		c.settled = true
		return
	}
	_, there := c.filter.trial(&c.track, c.place()+c.lag-lag, mic)
	late := c.frames >= settleFrames
	if there < knownWay*before || (late && peak > clearPeak && c.beyond(lag)) {
		c.move(lag)
	}
	if c.settled = c.settled || late; late {
		c.filter.forgetDoubt(pathUnknown / 10)
	}
}

// isLoud reports whether a frame may hold an echo that matters.
func isLoud(mic []int16) bool {
	sum := float32(0)
	for _, v := range mic {
		sum += float32(v) * float32(v)
	}
	return sum > delayLoud*float32(len(mic))
}

// beyond reports whether the filter cannot hear an echo with that delay.
func (c *Canceller) beyond(lag int64) bool {
	off := lag - c.lag
	return off < -front || off > tailSize/2
}

// follow moves with an echo that has moved. Whoever speaks over an echo looks
// like one that has: only the filter knows.
func (c *Canceller) follow(lag int64, peak float32, mic []int16) {
	before, here := c.filter.trial(&c.track, c.place(), mic)
	if here < knownWay*before {
		c.strayed = 0
		return
	}
	if before < quietFrame*c.micPower {
		return // too soft to tell
	}
	c.delay.fade()
	_, there := c.filter.trial(&c.track, c.place()+c.lag-lag, mic)
	switch again := c.again(lag); {
	case there < knownWay*min(here, before):
		c.move(lag)
	case c.wary > 0:
		c.settled, c.frames = false, 0
	case again && peak > clearPeak && c.beyond(lag):
		if c.strayed++; c.strayed >= strayFrames {
			c.move(lag)
			c.filter.forgetDoubt(pathUnknown / 10)
		}
	}
}

// again reports whether a delay is the one that was seen last.
func (c *Canceller) again(lag int64) bool {
	before := c.glimpse
	c.glimpse = lag
	return lag-before < sameDelay && before-lag < sameDelay
}

// move puts the filter at another delay.
func (c *Canceller) move(lag int64) {
	c.lag, c.settled, c.strayed, c.wary = lag, true, 0, 0
	c.filter.refill(&c.track, c.place())
}
