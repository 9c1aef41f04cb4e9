package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
)

// Bounds of what waits for the disk; beyond them the recording ends.
const (
	queueEntries = 4096
	queueBytes   = 16 << 20
)

var errSlow = errors.New("the disk is too slow")

// writer writes the entries of one tape on a goroutine of its own, which begin
// starts and end waits for.
type writer struct {
	recorder *Recorder
	log      *slog.Logger
	queue    chan Entry // closed by end
	waiting  atomic.Int64
	slow     atomic.Bool // an entry found no room in the queue: nothing after it counts
	done     chan struct{}

	// Of the goroutine.
	out     *os.File
	buf     *bufio.Writer
	file    *file
	written int64
	failed  bool
}

// put queues an entry. The tape calls it for one entry at a time.
func (w *writer) put(e Entry) {
	size := e.bytes()
	if w.slow.Load() {
		return
	}
	if w.waiting.Add(size) > queueBytes {
		w.slow.Store(true)
		return
	}
	select {
	case w.queue <- e:
	default:
		w.slow.Store(true)
	}
}

// bytes is about how much an entry holds.
func (e *Entry) bytes() int64 {
	n := 256
	switch {
	case e.Frame != nil:
		n += len(e.Frame.Packet)
	case e.TTS != nil && e.TTS.Sound != nil:
		n += 2 * len(e.TTS.Sound.PCM)
		for _, p := range e.TTS.Sound.Packets {
			n += len(p)
		}
	case e.Song != nil:
		n += 2 * len(e.Song.PCM)
	case e.Audio != nil:
		n += len(e.Audio.Packet)
	case e.LLM != nil && e.LLM.Request != nil:
		for _, m := range e.LLM.Request.Messages {
			n += len(m.Content)
		}
	}
	return int64(n)
}

// begin makes the file and starts the goroutine.
func (w *writer) begin(name string) error {
	out, f, err := w.recorder.create(name)
	if err != nil {
		w.recorder.failed(w.log, err)
		return err
	}
	w.log.Info("conversation is recorded", "file", out.Name())
	w.out, w.file, w.buf, w.done = out, f, bufio.NewWriterSize(out, 64<<10), make(chan struct{})
	go w.run()
	return nil
}

// end waits until all is written. Nothing is put any more.
func (w *writer) end() {
	if w.done == nil {
		return
	}
	close(w.queue)
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	defer func() { w.recorder.finished(w.file, w.failed) }()
	for e := range w.queue {
		w.waiting.Add(-e.bytes())
		w.entry(e)
		if len(w.queue) == 0 && !w.failed {
			if err := w.buf.Flush(); err != nil {
				w.fail(err)
			}
		}
	}
	if w.slow.Load() && !w.failed {
		w.fail(errSlow)
	}
	if err := w.out.Close(); err != nil && !w.failed {
		w.fail(err)
	}
}

// entry writes one entry.
func (w *writer) entry(e Entry) {
	if w.failed {
		return
	}
	line, err := json.Marshal(e)
	if err != nil {
		w.fail(err)
		return
	}
	line = append(line, '\n')
	if err := w.recorder.take(w.file, w.written, int64(len(line))); err != nil {
		w.fail(err)
		return
	}
	w.written += int64(len(line))
	if _, err := w.buf.Write(line); err != nil {
		w.fail(err)
	}
}

// fail ends the recording, and says so where that can still be written.
func (w *writer) fail(err error) {
	w.failed = true
	w.recorder.failed(w.log, err)
	if line, bad := json.Marshal(Entry{End: &Reason{Cause: err.Error(), Short: true}}); bad == nil {
		_, _ = w.buf.Write(append(line, '\n')) // nobody can be told more
		_ = w.buf.Flush()
	}
}
