package connection

import (
	"net"
	"sync"
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
// clients that answer no pings at all, or that are behind a proxy, which
// acknowledges everything.

const (
	askEvery     = 1400 * time.Millisecond // while sound goes out
	answerWithin = 3500 * time.Millisecond // with askEvery: less than 5 s after the last read
	lookEvery    = 500 * time.Millisecond  // whether the network still brings what is sent
	ackedWithin  = time.Second             // what was sent so long ago should be acknowledged
)

// lifeline is the waiting for an answer. All times are since the connection
// began. Its methods may be called at the same time.
type lifeline struct {
	mu     sync.Mutex
	asked  time.Duration // when the device was last pinged
	waited time.Duration // from when on the answer is waited for
	looked time.Duration // when it was last looked at
}

// unanswered reports whether a device that does answer pings has not done so
// since it was asked. lastPong is 0 where none ever came. The caller holds mu.
func (l *lifeline) unanswered(lastPong time.Duration) bool {
	return lastPong != 0 && lastPong < l.asked
}

// ask reports whether to ping the device now, for its next frame of sound.
func (l *lifeline) ask(now, lastPong time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unanswered(lastPong) || now-l.asked < askEvery {
		return false
	}
	l.asked, l.waited, l.looked = now, now, now
	return true
}

// look says after how long to look again, 0 for no more, and whether the device
// does not read. A time in which this process stood still, and in which the
// network did, does not count.
func (l *lifeline) look(now, lastPong time.Duration, reachable bool) (again time.Duration, stalled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lastPong == 0 || !l.unanswered(lastPong) {
		return 0, false
	}
	if !reachable || now-l.looked > 2*lookEvery {
		l.waited = now
	}
	l.looked = now
	left := l.waited + answerWithin - now
	return min(left, lookEvery), left <= 0
}

// askForLife pings the device from time to time. It is called before each frame of sound.
func (c *conn) askForLife() error {
	if !c.life.ask(time.Since(c.began), c.pongAt()) {
		return nil
	}
	if !c.who.proxied {
		c.looker.Reset(lookEvery)
	}
	return c.writeControl(websocket.PingMessage, nil)
}

// look ends the connection to a device that does not read. It is called by the
// timer, until there is an answer.
func (c *conn) look() {
	switch again, stalled := c.life.look(time.Since(c.began), c.pongAt(), c.reachable()); {
	case stalled:
		c.end(ErrStalled)
	case again > 0 && !c.out.isClosed():
		c.looker.Reset(again)
	}
}

// pongAt is when the last pong came, since the connection began; 0: none has.
func (c *conn) pongAt() time.Duration { return time.Duration(c.lastPong.Load()) }

// reachable reports whether the network brings what is sent to the device's
// system, as far as is known.
func (c *conn) reachable() bool {
	tcp, ok := c.ws.NetConn().(*net.TCPConn)
	return !ok || acknowledged(tcp, ackedWithin)
}
