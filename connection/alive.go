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

// lifeline is the waiting for an answer. All times are since the connection
// began. It is for the writer.
type lifeline struct {
	asked   time.Duration // when the device was last pinged
	waited  time.Duration // from when on the answer is waited for
	unheard int           // frames of sound written since it was asked, without an answer
}

// unanswered reports whether a device that does answer pings has not done so
// since it was asked. lastPong is 0 where none ever came.
func (l *lifeline) unanswered(lastPong time.Duration) bool {
	return lastPong != 0 && lastPong < l.asked
}

// next is called before each frame of sound, and says whether to ping the device,
// or to give it up.
func (l *lifeline) next(now, lastPong time.Duration, reachable func() bool) (ping, stalled bool) {
	switch {
	case !l.unanswered(lastPong):
		if now-l.asked < askEvery {
			return false, false
		}
		*l = lifeline{asked: now, waited: now}
		return true, false
	case now-l.asked >= ackedWithin && !reachable():
		l.waited = now
	case now-l.waited >= answerWithin && l.unheard >= leastUnheard:
		return false, true
	}
	l.unheard++
	return false, false
}

// askForLife is called before each frame of sound.
func (c *conn) askForLife() error {
	ping, stalled := c.life.next(time.Since(c.began), c.pongAt(), c.reachable)
	switch {
	case ping:
		return c.writeControl(websocket.PingMessage, nil)
	case stalled:
		return ErrStalled
	}
	return nil
}

// pongAt is when the last pong came, since the connection began; 0: none has.
func (c *conn) pongAt() time.Duration { return time.Duration(c.lastPong.Load()) }

// patience is how long a write may take.
func (c *conn) patience() time.Duration {
	if !c.life.unanswered(c.pongAt()) || !c.reachable() {
		return writeTimeout
	}
	return max(answerWithin-(time.Since(c.began)-c.life.waited), leastWrite)
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
	if errors.Is(err, ErrStalled) || ok && late.Timeout() && c.life.unanswered(c.pongAt()) {
		return ErrStalled
	}
	return writeFailed(err)
}
