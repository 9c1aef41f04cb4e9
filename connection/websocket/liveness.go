package websocket

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Times of the liveness.
const (
	askEvery     = 1400 * time.Millisecond // while sound goes out
	answerWithin = 3500 * time.Millisecond // with askEvery: less than 5 s after the last read
	probeEvery   = 500 * time.Millisecond  // whether the network still brings what is sent
	ackedWithin  = time.Second             // what was sent so long ago should be acknowledged
)

// liveness finds out whether the device still reads: it pings it every 30 s, and
// more often while sound goes out (docs/behaviours.md 41). Writes alone tell
// it late: the system of a device may take half a minute of speech for a program
// that hangs. What the device sends meanwhile does not show that it reads.
//
// That is for devices that do not read, not for networks that stand still: as long
// as what was sent is not even acknowledged, only writeTimeout counts, and when the
// network is back the device has all the time to answer. Nor is it for clients that
// answer no pings at all, or that are behind a proxy, which acknowledges everything.
//
// All times are since the connection began. Its methods may be called at the same
// time.
type liveness struct {
	began   time.Time
	nc      net.Conn
	proxied bool
	ping    func()
	stalled func() // the device does not read

	mu       sync.Mutex
	stopped  bool
	lastPong time.Duration // 0: none has come
	waiting  waiting
	pinger   *time.Timer // asks for the regular pings
	prober   *time.Timer // checks whether the device answers, while it is spoken to
}

// waiting is the waiting for an answer. It is for one goroutine at a time.
type waiting struct {
	asked  time.Duration // when the device was last pinged
	since  time.Duration // from when on the answer is waited for
	probed time.Duration // when it was last checked
}

func newLiveness(nc net.Conn, proxied bool, ping func()) *liveness {
	return &liveness{began: time.Now(), nc: nc, proxied: proxied, ping: ping}
}

// start begins to ping. stalled is called when the device does not read.
func (l *liveness) start(stalled func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.stalled = stalled
	l.pinger = time.AfterFunc(pingEvery, l.regular)
	l.prober = time.AfterFunc(time.Hour, l.probe)
	l.prober.Stop()
}

// met lets the first ping be soon: the device has said hello.
func (l *liveness) met() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.pinger.Reset(firstPing)
	}
}

// regular pings, again and again.
func (l *liveness) regular() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.ping()
		l.pinger.Reset(pingEvery)
	}
}

// pong notes that the device has answered.
func (l *liveness) pong() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastPong = time.Since(l.began)
}

// beforeSound pings the device from time to time. It is called before each frame
// of sound.
func (l *liveness) beforeSound() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || !l.waiting.ask(time.Since(l.began), l.lastPong) {
		return
	}
	l.ping()
	if !l.proxied && l.prober != nil {
		l.prober.Reset(probeEvery)
	}
}

// probe ends the connection to a device that does not read. The timer calls it
// until there is an answer.
func (l *liveness) probe() {
	reachable := l.reachable()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	switch again, stalled := l.waiting.probe(time.Since(l.began), l.lastPong, reachable); {
	case stalled:
		l.stalled()
	case again > 0:
		l.prober.Reset(again)
	}
}

// reachable reports whether the network brings what is sent to the device's
// system, as far as is known.
func (l *liveness) reachable() bool {
	tcp, ok := l.nc.(*net.TCPConn)
	return !ok || acknowledged(tcp, ackedWithin)
}

// stop ends all pings.
func (l *liveness) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.pinger != nil {
		l.pinger.Stop()
		l.prober.Stop()
	}
}

// unanswered reports whether a device that does answer pings has not done so since
// it was asked. lastPong is 0 where none ever came.
func (w *waiting) unanswered(lastPong time.Duration) bool {
	return lastPong != 0 && lastPong < w.asked
}

// ask reports whether to ping the device now, for its next frame of sound.
func (w *waiting) ask(now, lastPong time.Duration) bool {
	if w.unanswered(lastPong) || now-w.asked < askEvery {
		return false
	}
	w.asked, w.since, w.probed = now, now, now
	return true
}

// probe returns after how long to check again, 0 for no more, and whether the
// device does not read. A time in which this process stood still, or the network
// did, does not count.
func (w *waiting) probe(now, lastPong time.Duration, reachable bool) (again time.Duration, stalled bool) {
	if lastPong == 0 || !w.unanswered(lastPong) {
		return 0, false
	}
	if !reachable || now-w.probed > 2*probeEvery {
		w.since = now
	}
	w.probed = now
	left := w.since + answerWithin - now
	return min(left, probeEvery), left <= 0
}

// maxOverhead is how many bytes of frame headers one message may have, beside its
// payload: 10,000 fragments.
const maxOverhead = 64 << 10

// errFlood is the end of a message that is made of too many fragments.
var errFlood = errors.New("message of too many fragments")

// meteredConn ends a message whose raw bytes are more than any message needs. The
// WebSocket library limits payloads only: it reads a message of endless empty
// fragments without ever coming back (TestEndlessFragments). It is for the reader.
type meteredConn struct {
	net.Conn
	left int // bytes that may still be read
}

// Read reads as long as there are bytes left.
func (m *meteredConn) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errFlood
	}
	n, err := m.Conn.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}

// begin allows for one more message.
func (m *meteredConn) begin() { m.left = maxText + maxOverhead }

// skip does not count a control frame with a payload of n bytes.
func (m *meteredConn) skip(n int) { m.left += 6 + n }

// hijacker gives the upgrader the metered connection in the place of its own.
type hijacker struct {
	http.ResponseWriter
	in *meteredConn
}

// Hijack takes the connection over.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.in.Conn = nc
	h.in.begin()
	return h.in, rw, nil
}
