package gateway

import (
	"bytes"
	"sync"
	"time"
)

// pump writes a stream of events that stays open: what is written to it goes out by
// itself, so that a client that reads slowly keeps no other waiting, and a comment
// now and then. It owns the queue of parts and the goroutine that writes them.
type pump struct {
	parts  chan []byte // size maxNews
	done   chan struct{}
	hangUp func()             // ends the stream of a client that reads too slowly
	out    func([]byte) error // writes a part, in time
	broken bool               // a part could not be written; of the goroutine
	wg     sync.WaitGroup
}

// newPump starts a pump. Comments are written while open is true.
func newPump(hangUp func(), out func([]byte) error, open func() bool) *pump {
	p := &pump{parts: make(chan []byte, maxNews), done: make(chan struct{}), hangUp: hangUp, out: out}
	p.wg.Go(func() { p.run(open) })
	return p
}

// write takes a part. It never waits: a client for which there are too many is hung
// up on.
func (p *pump) write(part []byte) (int, error) {
	select {
	case p.parts <- bytes.Clone(part):
		return len(part), nil
	default:
		p.hangUp()
		return 0, errWireClosed
	}
}

func (p *pump) run(open func() bool) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case part := <-p.parts:
			p.pass(part)
		case <-ticker.C:
			if open() {
				p.pass([]byte(": ping\n\n"))
			}
		case <-p.done:
			for len(p.parts) > 0 {
				p.pass(<-p.parts)
			}
			return
		}
	}
}

// pass writes a part, and hangs up if that cannot be done.
func (p *pump) pass(part []byte) {
	if !p.broken && p.out(part) != nil {
		p.broken = true
		p.hangUp()
	}
}

// stop writes what is left and waits until all is written.
func (p *pump) stop() {
	close(p.done)
	p.wg.Wait()
}
