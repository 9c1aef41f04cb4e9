package connection

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of the two queues.
const (
	controlQueue = 256       // messages; full means that the device is stuck
	controlBytes = 512 << 10 // of these messages; a single one may be longer
	audioQueue   = 8         // frames; full means that a frame is refused
	endedTurns   = 8         // how many ended turns are remembered
)

// entry is one control entry for the writer: audio frames, then a text message,
// without anything in between. Either may be missing.
type entry struct {
	frames [][]byte
	text   []byte
}

// outgoing holds what is to be written to a device: control messages, which are
// never dropped and overtake sound, and a few frames of sound. Nothing waits; all
// methods may be called at the same time. The writer takes, all others put in.
type outgoing struct {
	began time.Time
	ready chan struct{} // size 1: there may be something to take
	work  func()        // begins a writer; set before anything is put in

	mu      sync.Mutex
	closed  bool    // nothing new is taken in
	working bool    // there is a writer, or there will be none any more
	control []entry // at most controlQueue
	bytes   int     // of the texts in control
	frames  frameQueue
	ended   [endedTurns]uint64 // the turns that had their stop last
	next    int                // in ended
	stamp   uint32             // the timestamp that was given last
}

func newOutgoing(work func()) *outgoing {
	return &outgoing{began: time.Now(), ready: make(chan struct{}, 1), work: work}
}

// wake tells the writer to look, or begins one. One token is enough for any
// number of entries. The caller holds mu.
func (o *outgoing) wake() {
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

// putText queues a control message. ok is false if the queue is full. After close
// the message is thrown away, and live is false.
func (o *outgoing) putText(text []byte) (live, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.put(entry{text: text})
}

// put queues an entry. The caller holds mu.
func (o *outgoing) put(e entry) (live, ok bool) {
	if o.closed {
		return false, true
	}
	if len(o.control) >= controlQueue || len(o.control) > 0 && o.bytes+len(e.text) > controlBytes {
		return true, false
	}
	o.control = append(o.control, e)
	o.bytes += len(e.text)
	o.wake()
	return true, true
}

// putStop queues the end of a turn's sound: its frames that wait, the closing
// frame if there is one, and the stop, as one entry that no other frame can get
// into. Frames of that turn are refused from now on. With cut, those that wait
// are thrown away. ok is false if the queue is full.
func (o *outgoing) putStop(turn uint64, cut bool, closing, text []byte) (ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := o.frames.takeTurn(turn)
	if cut {
		frames = nil
	}
	if len(closing) > 0 {
		frames = append(frames, closing)
	}
	if turn != 0 {
		o.ended[o.next%endedTurns] = turn
		o.next++
	}
	_, ok = o.put(entry{frames: frames, text: text})
	return ok
}

// putAudio queues a copy of one packet of a turn and gives it a timestamp. It is
// not ok if the queue is full, the turn has had its stop, or the session ends.
func (o *outgoing) putAudio(turn uint64, packet []byte) (stamp uint32, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.frames.count == audioQueue || len(packet) == 0 {
		return 0, false
	}
	if turn != 0 && slices.Contains(o.ended[:], turn) {
		return 0, false
	}
	stamp = o.laterStamp()
	o.frames.put(turn, packet, stamp)
	o.wake()
	return stamp, true
}

// laterStamp is a timestamp for the next frame: ms since the session began, never
// the same twice and never 0. The caller holds mu.
func (o *outgoing) laterStamp() uint32 {
	o.stamp = max(o.stamp+1, uint32(time.Since(o.began).Milliseconds()))
	return o.stamp
}

// nextStamp is a timestamp for a frame that was not queued by putAudio.
func (o *outgoing) nextStamp() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.laterStamp()
}

func (o *outgoing) lastStamp() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stamp
}

// lag returns the wait of the oldest frame, at least a nanosecond; 0 when none waits.
func (o *outgoing) lag() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.frames.count == 0 {
		return 0
	}
	return max(time.Since(o.frames.at(0).queued), 1)
}

// take gives the next control entry, else the next frame with its timestamp, else
// ok is false. A frame is copied into buf, which grows as needed.
func (o *outgoing) take(buf []byte) (e entry, frame []byte, stamp uint32, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.control) > 0 {
		e = o.control[0]
		o.control = slices.Delete(o.control, 0, 1)
		o.bytes -= len(e.text)
		return e, nil, 0, true
	}
	if o.frames.count == 0 {
		return entry{}, nil, 0, false
	}
	frame, stamp = o.frames.take(buf)
	return entry{}, frame, stamp, true
}

// rest reports whether there is nothing to do, so that the writer ends until wake
// begins another.
func (o *outgoing) rest() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.control) > 0 || o.frames.count > 0 {
		return false
	}
	o.control, o.frames.ring = nil, nil
	o.working = false
	return true
}

func (o *outgoing) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// close refuses everything new. What is queued can still be taken, and a writer
// comes to write it. It may be called more than once.
func (o *outgoing) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		o.wake()
	}
}

// frameQueue holds the frames of sound that wait, oldest first. Packets are copied
// into its own memory, which serves the frames that come after.
type frameQueue struct {
	ring  *[audioQueue]queuedFrame // nil: there has been none since the writer rested
	first int
	count int
}

type queuedFrame struct {
	turn   uint64
	packet []byte
	queued time.Time
	stamp  uint32
}

// at is the i-th place from the oldest frame on.
func (q *frameQueue) at(i int) *queuedFrame { return &q.ring[(q.first+i)%audioQueue] }

// put adds a copy of a packet. There must be room.
func (q *frameQueue) put(turn uint64, packet []byte, stamp uint32) {
	if q.ring == nil {
		q.ring = new([audioQueue]queuedFrame)
	}
	f := q.at(q.count)
	f.turn, f.packet, f.queued, f.stamp = turn, append(f.packet[:0], packet...), time.Now(), stamp
	q.count++
}

// take copies the oldest frame into buf and removes it. There must be one.
func (q *frameQueue) take(buf []byte) (frame []byte, stamp uint32) {
	f := q.at(0)
	q.first = (q.first + 1) % audioQueue
	q.count--
	return append(buf[:0], f.packet...), f.stamp
}

// takeTurn removes the frames of one turn and gives them in order, with their
// memory.
func (q *frameQueue) takeTurn(turn uint64) (taken [][]byte) {
	kept := 0
	for i := range q.count {
		f := q.at(i)
		if f.turn == turn {
			taken = append(taken, f.packet)
			*f = queuedFrame{}
			continue
		}
		to := q.at(kept)
		*to, *f = *f, *to
		kept++
	}
	q.count = kept
	return taken
}

// writerRest is how long a writer with nothing to write waits for more, before
// it ends and gives its stack back: longer than any pause inside a reply's sound.
const writerRest = time.Second

// writer writes what is queued for a device to its transport. It is the only one
// that writes. Its goroutine exists only while there is something to write:
// kept for good it costs 6 to 8 KiB for each device whose 38 tools were listed
// (M12: 53 to 55 KiB with it, 61 KiB without).
type writer struct {
	queue     *outgoing
	transport Transport
	counts    *counters
	end       func(error)

	pcm    atomic.Pointer[pcmCodec] // nil: the device takes Opus
	packet []byte                   // the frame that is being written
	done   chan struct{}            // closed when no writer will come any more
	failed bool                     // a write has failed; set before done is closed
}

// run writes until there has been nothing for a while, or until the queue is
// closed and empty.
func (w *writer) run(context.Context) {
	over := true // also of a panic
	defer func() {
		if over {
			close(w.done)
		}
	}()
	linger := time.NewTimer(writerRest)
	defer linger.Stop()
	for {
		last := w.queue.isClosed()
		if err := w.write(); err != nil {
			w.failed = true
			w.end(WriteFailed(err))
			return
		}
		if last {
			return
		}
		linger.Reset(writerRest)
		select {
		case <-w.queue.ready:
		case <-linger.C:
			if w.queue.rest() {
				over = false
				return
			}
		}
	}
}

func (w *writer) write() error {
	for {
		e, frame, stamp, ok := w.queue.take(w.packet)
		if !ok {
			return nil
		}
		if frame != nil {
			w.packet = frame
			if err := w.writeFrame(frame, stamp); err != nil {
				return err
			}
			continue
		}
		for _, frame := range e.frames {
			if err := w.writeFrame(frame, w.queue.nextStamp()); err != nil {
				return err
			}
		}
		w.counts.textOut.Add(1)
		if err := w.transport.WriteText(e.text); err != nil {
			return err
		}
	}
}

func (w *writer) writeFrame(packet []byte, stamp uint32) error {
	w.counts.framesOut.Add(1)
	if codec := w.pcm.Load(); codec != nil {
		packet = codec.decode(packet)
	}
	return w.transport.WriteAudio(packet, stamp)
}

// flushed waits for the end of all writing, which the closed queue brings about,
// and reports whether everything was written in time.
func (w *writer) flushed(limit time.Duration) bool { return within(limit, w.done) && !w.failed }
