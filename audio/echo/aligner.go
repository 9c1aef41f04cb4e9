package echo

// When an alignment is believed.
const (
	front       = 320  // samples: how early the filter begins before the strongest echo
	farJump     = 4800 // samples from the running alignment beyond which a timestamp is believed at once
	clearPeak   = 7    // prominence of a delay that is taken for one
	waryFrames  = 6    // for which a loudspeaker that has stood still is expected to be late
	knownWay    = 0.5  // part of an echo that a known room leaves at most at the right place
	betterWay   = 0.7  // part of that which it leaves at most at a better place
	sameDelay   = 32   // samples by which two looks at one delay may differ
	quietFrame  = 0.5  // of the usual power, which a frame must have to tell anything
	strayFrames = 5    // for which an echo must be elsewhere before the room is another one

	settleFrames  = 8  // loud frames in which the known way is looked for
	patienceFirst = 20 // loud frames until the search for the delay is given up
)

// aligner runs the reference along the microphone's sound, so that the filter
// hears what was played when its echo comes. It owns the place in the reference
// and the delay of the echo, and tells the filter when one of them jumps.
type aligner struct {
	track  reference
	filter *filter

	stamped bool  // the frame before had a timestamp that is known
	runs    bool  // the reference runs along
	at      int64 // the place in the track that belongs to the next microphone sample
	drift   int64 // how far from it the timestamps are, which is known to mean nothing
	delay   delay
}

// delay holds the time that an echo takes from the reference to the microphone,
// how sure that is, and the search for it.
type delay struct {
	finder  *delayFinder
	scratch [512*delayStep + delayTaps]float32

	lag     int64 // samples by which the echo is later than the reference
	located bool  // lag was found
	settled bool  // and the filter may learn at it
	sought  int   // loud frames until then
	seen    int64 // the last delay that was seen
	frames  int   // loud frames since the stretch of sound began
	strayed int   // frames in a row whose echo seems to be elsewhere
	wary    int   // frames in which a misfit is taken for a delay
}

func newAligner(f *filter) *aligner {
	a := &aligner{filter: f, delay: delay{finder: newDelayFinder()}}
	a.track.fence = -1
	return a
}

// played takes in the reference's next packet.
func (a *aligner) played(stamp uint32, pcm []int16) {
	if !a.runs && a.track.fence < 0 { // a new stretch begins
		a.track.fence = a.track.written
	}
	a.track.add(stamp, pcm)
}

// reset forgets the reference and the place in it, and keeps the delay.
func (a *aligner) reset() {
	a.track.reset()
	a.delay.finder.reset()
	a.runs, a.stamped = false, false
}

// next writes what the filter hears during the next hop, and goes on.
func (a *aligner) next(w *window) {
	a.track.read(w[:], a.place()+hopSize-fftSize)
	a.at += hopSize
}

// place returns the place in the track that the filter's first tap hears next.
func (a *aligner) place() int64 { return a.at - a.delay.lag + front }

// align brings the reference to where the timestamp says it is. The device takes it from a
// queue, so it may be a packet or two off, and begin or cease to be so at any time. While the
// reference runs along, the samples count and a timestamp is believed if the filter fares
// better with it, or if it is far off. echoing says that an echo may still go on.
func (a *aligner) align(stamp uint32, mic []int16, echoing bool) {
	from, known := a.track.find(stamp)
	stamped := a.stamped
	a.stamped = known
	switch {
	case stamp == 0 && stamped && len(mic) >= frameSize && a.runs && a.delay.located && a.at+frameSize < a.track.end():
		// Nothing was played to its end in this frame: the loudspeaker may have
		// stood still, and all that follows is late.
		a.delay.wary = waryFrames
	case !known:
	case !a.runs:
		if old := from < a.track.end(); old && echoing && near(from, a.at) {
			return // the end of what has just been played
		}
		a.begin(from)
	case !near(from, a.at):
		a.begin(from)
	case from-a.at != a.drift:
		a.reconsider(from-a.at, mic)
	}
}

// near reports whether two places are less than [farJump] apart.
func near(a, b int64) bool { return a-b < farJump && b-a < farJump }

// begin starts at a place that is known from a timestamp alone.
func (a *aligner) begin(from int64) {
	a.runs = a.track.enter(from)
	a.at, a.drift = from, 0
	a.delay.begin()
	a.filter.refill(&a.track, a.place())
}

// reconsider lets the filter decide about a timestamp that has come to be off:
// because a frame was lost, or because a queue has grown or shrunk.
func (a *aligner) reconsider(drift int64, mic []int16) {
	moved := a.at + drift - a.drift
	before, here := a.filter.trial(&a.track, a.place(), mic)
	_, there := a.filter.trial(&a.track, a.place()+moved-a.at, mic)
	switch {
	case there < betterWay*here && there < betterWay*before:
		a.at = moved
		a.filter.refill(&a.track, a.place())
	case here < betterWay*there:
		a.drift = drift
	}
}

// search looks for the echo in a frame, if something is played in it. usual is
// the power that a frame of the microphone usually has.
func (a *aligner) search(mic []int16, usual float32) {
	d := &a.delay
	if !d.finder.hear(&a.track, a.at, mic, d.scratch[:]) {
		return
	}
	d.frames++
	lag, peak := d.finder.find()
	d.wary = max(0, d.wary-1)
	switch {
	case !d.located:
		a.locate(lag, peak, mic)
	case !d.settled:
		a.recover(lag, peak, mic)
	default:
		a.follow(lag, peak, mic, usual)
	}
}

// locate takes the first delay that is clear in two frames. If none is in the first loud
// frames, there is little to cancel, and the filter learns at the most likely delay.
func (a *aligner) locate(lag int64, peak float32, mic []int16) {
	d := &a.delay
	if isLoud(mic) {
		d.sought++
	}
	if d.again(lag) && peak > clearPeak {
		d.located = true
		a.filter.reset()
		a.move(lag)
	} else if d.sought >= patienceFirst {
		d.settled = true
	}
}

// recover finds the known room in a new stretch of sound.
func (a *aligner) recover(lag int64, peak float32, mic []int16) {
	d := &a.delay
	before, here := a.filter.trial(&a.track, a.place(), mic)
	if here < knownWay*before {
		d.settled = true
		return
	}
	_, there := a.filter.trial(&a.track, a.place()+d.lag-lag, mic)
	late := d.frames >= settleFrames
	if there < knownWay*before || (late && peak > clearPeak && d.beyond(lag)) {
		a.move(lag)
	}
	if d.settled = d.settled || late; late {
		a.filter.forgetDoubt(pathUnknown / 10)
	}
}

// follow moves with an echo that has moved. A voice over an echo looks like an
// echo that has moved: only the filter can tell them apart.
func (a *aligner) follow(lag int64, peak float32, mic []int16, usual float32) {
	d := &a.delay
	before, here := a.filter.trial(&a.track, a.place(), mic)
	if here < knownWay*before {
		d.strayed = 0
		return
	}
	if before < quietFrame*usual {
		return // too soft to tell
	}
	d.finder.fade()
	_, there := a.filter.trial(&a.track, a.place()+d.lag-lag, mic)
	switch again := d.again(lag); {
	case there < knownWay*min(here, before):
		a.move(lag)
	case d.wary > 0:
		d.settled, d.frames = false, 0
	case again && peak > clearPeak && d.beyond(lag):
		if d.strayed++; d.strayed >= strayFrames {
			a.move(lag)
			a.filter.forgetDoubt(pathUnknown / 10)
		}
	}
}

// move puts the filter at another delay.
func (a *aligner) move(lag int64) {
	d := &a.delay
	d.lag, d.settled, d.strayed, d.wary = lag, true, 0, 0
	a.filter.refill(&a.track, a.place())
}

// begin starts a new stretch of sound, in which the delay has to be confirmed.
func (d *delay) begin() {
	d.frames, d.strayed = 0, 0
	d.settled = !d.located && d.sought >= patienceFirst
	d.finder.reset()
}

// again reports whether lag is the delay that was seen last.
func (d *delay) again(lag int64) bool {
	before := d.seen
	d.seen = lag
	return lag-before < sameDelay && before-lag < sameDelay
}

// beyond reports whether the filter cannot hear an echo with that delay.
func (d *delay) beyond(lag int64) bool {
	off := lag - d.lag
	return off < -front || off > tailSize/2
}

// isLoud reports whether a frame may hold an echo that matters.
func isLoud(mic []int16) bool {
	sum := float32(0)
	for _, v := range mic {
		sum += float32(v) * float32(v)
	}
	return sum > delayLoud*float32(len(mic))
}
