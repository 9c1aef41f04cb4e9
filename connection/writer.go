package connection

import (
	"context"
	"time"
)

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

	packet []byte        // the frame that is being written
	done   chan struct{} // closed when no writer will come any more
	failed bool          // a write has failed; set before done is closed
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

// write writes until nothing is queued.
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
	return w.transport.WriteAudio(packet, stamp)
}

// flushed waits for the end of all writing, which the closed queue brings about,
// and reports whether everything was written in time.
func (w *writer) flushed(limit time.Duration) bool { return within(limit, w.done) && !w.failed }
