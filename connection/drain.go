package connection

import (
	"time"

	"xiaozhi/agent"
)

// replyDrain is how long Shutdown lets a reply go on before it is cut.
const replyDrain = 8 * time.Second

// drain ends the connection because the server stops: at once when the device
// waits for no reply, else when its reply has ended.
func (c *conn) drain() {
	c.mu.Lock()
	c.draining = true
	busy := c.replying
	c.mu.Unlock()
	if !busy {
		c.end(ErrShutdown)
	}
}

// follow notes where in a turn the device is, from what it has been sent.
func (c *conn) follow(kind agent.MessageKind) {
	var replying bool
	switch kind {
	case agent.MessageSTT, agent.MessageTTSStart:
		replying = true
	case agent.MessageTTSStop:
	default:
		return
	}
	c.mu.Lock()
	c.replying = replying
	over := c.draining && !replying
	c.mu.Unlock()
	if over {
		c.end(ErrShutdown)
	}
}
