package connection

import (
	"slices"
	"sync"
	"time"
)

// Sizes of the two queues.
const (
	controlQueue = 256       // messages; full means that the device is stuck
	controlBytes = 512 << 10 // of these messages; a single one may be longer
	audioQueue   = 8         // frames; full means that a frame is refused
	overTurns    = 8         // how many ended turns are remembered
)

// item is one entry for the writer: audio frames, then a text message, without
// anything in between. Either may be missing.
type item struct {
	frames [][]byte
	text   []byte
	ends   bool // a reply is over
}

// queued is one audio frame that waits. The packet is the queue's own copy, and
// its memory serves the frames that come after it.
type queued struct {
	turn   uint64
	packet []byte
	at     time.Time // when it was queued
	stamp  uint32    // its timestamp on the wire
}

// outbox holds what is to be written. Everything may be called at the same
// time; nothing waits. The writer takes from it, everybody else puts in.
type outbox struct {
	began time.Time
	ready chan struct{} // size 1: there may be something to take
	work  func()        // begins a writer; set before anything is put

	mu      sync.Mutex
	closed  bool   // nothing new is taken in
	working bool   // there is a writer, or there will be none any more
	control []item // at most controlQueue
	bytes   int    // of the texts in control
	audio   [audioQueue]queued
	first   int // of audio
	count   int // of audio
	over    [overTurns]uint64
	overPos int
	pong    []byte // payload of the newest ping that is not answered yet
	hasPong bool
	hasPing bool   // one of ours is due
	stamp   uint32 // the timestamp that was given last
}

func newOutbox() *outbox {
	return &outbox{began: time.Now(), ready: make(chan struct{}, 1), work: func() {}}
}

// wake tells the writer to look, or begins one. One token is enough for any
// number of entries. The caller holds mu.
func (o *outbox) wake() {
	if !o.working {
		o.working = true
		o.work()
		return
	}
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// putText queues a control message. ok is false if the queue is full; after
// close it is taken and thrown away, live says which.
func (o *outbox) putText(text []byte) (live, ok bool) {
	return o.put(item{text: text})
}

func (o *outbox) put(it item) (live, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.putLocked(it)
}

func (o *outbox) putLocked(it item) (live, ok bool) {
	if o.closed {
		return false, true
	}
	if len(o.control) >= controlQueue || len(o.control) > 0 && o.bytes+len(it.text) > controlBytes {
		return true, false
	}
	o.control = append(o.control, it)
	o.bytes += len(it.text)
	o.wake()
	return true, true
}

// putStop queues the end of a turn's sound: what may still be heard of it, the
// closing frame if there is one, and the stop, as one entry that no other frame
// can get into. Frames of that turn are refused from now on. With cut, those
// that wait are thrown away. ok is false if the queue is full.
func (o *outbox) putStop(turn uint64, cut bool, closing, text []byte) (ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := o.takeTurn(turn)
	if cut {
		frames = nil
	}
	if o.count == 0 {
		o.audio = [audioQueue]queued{} // most devices are silent most of the time
	}
	if len(closing) > 0 {
		frames = append(frames, closing)
	}
	if turn != 0 {
		o.over[o.overPos%overTurns] = turn
		o.overPos++
	}
	_, ok = o.putLocked(item{frames: frames, text: text, ends: true})
	return ok
}

// takeTurn removes the waiting frames of one turn and gives them in order, with
// their memory.
func (o *outbox) takeTurn(turn uint64) [][]byte {
	var taken [][]byte
	kept := 0
	for i := range o.count {
		q := o.slot(i)
		if q.turn == turn {
			taken = append(taken, q.packet)
			*q = queued{}
			continue
		}
		to := o.slot(kept)
		*to, *q = *q, *to
		kept++
	}
	o.count = kept
	return taken
}

// slot is the i-th place of the audio queue, from the oldest frame on.
func (o *outbox) slot(i int) *queued { return &o.audio[(o.first+i)%audioQueue] }

// putAudio queues a copy of one packet of a turn and gives it a timestamp. Not ok:
// the queue is full, the turn has had its stop, or the connection is ending.
func (o *outbox) putAudio(turn uint64, packet []byte) (stamp uint32, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.count == audioQueue || len(packet) == 0 {
		return 0, false
	}
	if turn != 0 && slices.Contains(o.over[:], turn) {
		return 0, false
	}
	q := o.slot(o.count)
	q.turn, q.packet, q.at = turn, append(q.packet[:0], packet...), time.Now()
	o.stamp = o.laterStamp()
	q.stamp = o.stamp
	o.count++
	o.wake()
	return q.stamp, true
}

// laterStamp is a timestamp for the next frame: ms since the connection began,
// never the same twice and never 0. The caller holds mu.
func (o *outbox) laterStamp() uint32 {
	return max(o.stamp+1, uint32(time.Since(o.began).Milliseconds()))
}

// nextStamp is a timestamp for a frame that was not queued by putAudio.
func (o *outbox) nextStamp() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stamp = o.laterStamp()
	return o.stamp
}

// lastStamp is the timestamp that was given last.
func (o *outbox) lastStamp() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stamp
}

// lag is how long the oldest frame has waited; 0 when none waits.
func (o *outbox) lag() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == 0 {
		return 0
	}
	return time.Since(o.slot(0).at)
}

// putPong asks for the answer to a ping. Only the newest unanswered ping is
// answered (RFC 6455 section 5.5.3), so a flood of pings costs one entry.
func (o *outbox) putPong(payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pong = append(o.pong[:0], payload...)
	o.hasPong = true
	o.wake()
}

// putPing asks for a ping of ours; false: the connection is ending.
func (o *outbox) putPing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.hasPing = true
	o.wake()
	return true
}

// takePing reports whether a ping of ours is due, once.
func (o *outbox) takePing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	due := o.hasPing
	o.hasPing = false
	return due
}

// isClosed reports whether nothing can come any more.
func (o *outbox) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// rest reports whether there is nothing to do, so that the writer ends until
// wake begins another.
func (o *outbox) rest() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.control) > 0 || o.count > 0 || o.hasPong || o.hasPing {
		return false
	}
	o.control = nil
	o.working = false
	return true
}

// takePong gives the payload of a pong that is due, appended to dst.
func (o *outbox) takePong(dst []byte) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.hasPong {
		return dst, false
	}
	o.hasPong = false
	return append(dst, o.pong...), true
}

// take gives the next control message, else the next audio frame with its
// timestamp, else false. A frame is copied into buf, which grows as needed.
func (o *outbox) take(buf []byte) (it item, frame []byte, stamp uint32, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.control) > 0 {
		it = o.control[0]
		o.control = slices.Delete(o.control, 0, 1)
		o.bytes -= len(it.text)
		return it, nil, 0, true
	}
	if o.count == 0 {
		return item{}, nil, 0, false
	}
	frame, stamp = append(buf[:0], o.audio[o.first].packet...), o.audio[o.first].stamp
	o.first = (o.first + 1) % audioQueue
	if o.count--; o.count == 0 {
		o.first = 0 // a queue that is short uses few places
	}
	return item{}, frame, stamp, true
}

// close refuses everything new. What is queued can still be taken, and a writer
// comes to say goodbye. It may be called more than once.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		o.wake()
	}
}
