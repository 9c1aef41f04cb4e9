package websocket

import (
	"sync"

	"github.com/gorilla/websocket"
)

// controls writes pings of ours and answers to the device's. Only the newest ping
// that is not answered yet is answered (RFC 6455 section 5.5.3), so a flood of
// pings costs one entry. Its goroutine exists only while there is something to
// write; it writes between the messages, so that neither holds up the other. Its
// methods may be called at the same time, and do not wait, but for wait.
type controls struct {
	write func(kind int, payload []byte) error
	fail  func(error) // a write has failed; set before the first

	mu      sync.Mutex
	closed  bool
	working bool
	hasPing bool
	hasPong bool
	pong    []byte // payload
	wg      sync.WaitGroup
}

// ping asks for a ping.
func (c *controls) ping() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasPing = true
	c.work()
}

// answer asks for the answer to a ping.
func (c *controls) answer(payload string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pong, c.hasPong = append(c.pong[:0], payload...), true
	c.work()
}

// work begins to write. The caller holds mu.
func (c *controls) work() {
	if !c.closed && !c.working {
		c.working = true
		c.wg.Go(c.run)
	}
}

func (c *controls) run() {
	var buf [125]byte
	for {
		kind, payload := c.take(buf[:0])
		if kind < 0 {
			return
		}
		if err := c.write(kind, payload); err != nil {
			c.fail(err)
			return
		}
	}
}

// take gives what is due, in dst; less than 0: nothing is, and the goroutine ends.
func (c *controls) take(dst []byte) (kind int, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
	case c.hasPong:
		c.hasPong = false
		return websocket.PongMessage, append(dst, c.pong...)
	case c.hasPing:
		c.hasPing = false
		return websocket.PingMessage, nil
	}
	c.working = false
	return -1, nil
}

// close lets nothing more be written.
func (c *controls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// wait joins the goroutine. The socket must be closed.
func (c *controls) wait() { c.wg.Wait() }
