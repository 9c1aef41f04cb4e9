package connection

import (
	"time"

	"xiaozhi/internal/wire"
)

// replyDrain is how long Shutdown lets replies go on before they are cut. With
// what comes after it the whole drain takes less than 10 s.
const replyDrain = 9500 * time.Millisecond

// drain ends the connection because the server stops. A reply that the device
// waits for is heard to its end. A device that listens, so that a new turn may
// be on its way, is told aloud. Any other connection ends at once.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	switch {
	case c.replying || c.owed || c.door.Load() != nil:
	case c.listening:
		c.sayStopping()
	default:
		c.end(ErrShutdown)
	}
}

// sayStopping tells the device that the server stops, and ends the connection.
// The caller holds mu.
func (c *conn) sayStopping() {
	n, ok := c.server.notice(NoticeStopping, c.language)
	if !ok || c.ending {
		c.end(ErrShutdown)
		return
	}
	d := newDoorman(c, n, ErrShutdown)
	c.door.Store(d)
	c.speak(d.announce)
}

// follow notes where in a turn the device is, from what it has been sent. The
// caller holds mu.
func (c *conn) follow(m wire.Message) {
	switch m.Kind {
	case wire.MessageSTT, wire.MessageTTSStart:
		c.replying, c.owed = true, false
	case wire.MessageTTSStop:
		c.replying, c.owed = false, false
	default:
		return
	}
	switch {
	case !c.draining || c.replying:
	case m.Cut && c.listening: // somebody wants something new
		c.sayStopping()
	default:
		c.end(ErrShutdown)
	}
}

// attend notes what the device wants, from what it does. Of the reader.
func (c *conn) attend(ev wire.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch ev.(type) {
	case wire.ListenStart:
		c.listening, c.owed = true, false
	case wire.ListenStop: // an utterance is over, and will be answered
		c.owed, c.listening = c.listening, false
	case wire.Detect: // a greeting or an answer will come
		c.owed = true
	case wire.Abort:
		c.owed = false
	}
}
