package connection

import (
	"errors"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// This file finds out that a device that is spoken to reads no more (voice.md
// M16, behaviour 41). Writes alone tell it late: the system of the peer may take
// half a minute of speech for a program that hangs. So it is pinged while sound
// goes out, and is let go when it does not answer: what it sends meanwhile does
// not show that it reads.
//
// That is for devices that do not read, not for networks that stand still: as
// long as what was sent is not even acknowledged, only writeTimeout counts, and
// when the network is back the device has all the time to answer. Nor is it for
// clients that answer no pings at all.

const (
	askEvery     = 1400 * time.Millisecond // while sound goes out
	answerWithin = 3500 * time.Millisecond // with askEvery: less than 5 s after the last read
	leastWrite   = 500 * time.Millisecond  // so long every write may take
	ackedWithin  = time.Second             // what was sent so long ago should be acknowledged
	leastUnheard = 20                      // frames without an answer: a server that stood still reads at last what has come
)

// askForLife is called before each frame of sound. It pings from time to time,
// and fails when an answer has been missing for too long.
func (c *conn) askForLife() error {
	now := time.Since(c.began)
	switch {
	case !c.unanswered():
		if now-c.asked < askEvery {
			return nil
		}
		c.asked, c.waited, c.unheard = now, now, 0
		return c.writeControl(websocket.PingMessage, nil)
	case now-c.asked >= ackedWithin && !c.reachable():
		c.waited = now
	case now-c.waited >= answerWithin && c.unheard >= leastUnheard:
		return ErrStalled
	}
	c.unheard++
	return nil
}

// unanswered reports whether a device that does answer pings has not done so
// since it was asked.
func (c *conn) unanswered() bool {
	last := time.Duration(c.lastPong.Load())
	return last != 0 && last < c.asked
}

// patience is how long a write may take.
func (c *conn) patience() time.Duration {
	if !c.unanswered() || !c.reachable() {
		return writeTimeout
	}
	return max(answerWithin-(time.Since(c.began)-c.waited), leastWrite)
}

// reachable reports whether the network brings what is sent to the device's
// system, as far as is known.
func (c *conn) reachable() bool {
	tcp, ok := c.ws.NetConn().(*net.TCPConn)
	return !ok || acknowledged(tcp, ackedWithin)
}

// unwritten is the ending for a write that has failed.
func (c *conn) unwritten(err error) error {
	late, ok := errors.AsType[net.Error](err) // the WebSocket library wraps time-outs, so that only Timeout tells
	if errors.Is(err, ErrStalled) || ok && late.Timeout() && c.unanswered() {
		return ErrStalled
	}
	return writeFailed(err)
}
