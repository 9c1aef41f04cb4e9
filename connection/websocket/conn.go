package websocket

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
	"xiaozhi/internal/text"
)

// conn is the WebSocket of one device, as the [connection.Transport] of its
// session.
//
// # Concurrency
//
// The reader runs read. WriteText and WriteAudio are called by one goroutine at a
// time, Close by any.
type conn struct {
	ws       *websocket.Conn
	in       *meteredConn
	life     *liveness
	controls *controls
	readDone chan struct{} // closed when the reader has ended

	framing int  // 1, 2 or 3; set by Greet, before anything is written
	stamped bool // timestamps are wanted

	session *connection.Session // set by the reader, before anything is written
	met     bool                // the device has said hello; of the reader
	due     time.Time           // when the message that is being read must be complete; zero: none is; of the reader
	scratch []byte              // one message; of the reader
	frame   []byte              // one packet with its header; of the writer
}

func newConn(ws *websocket.Conn, in *meteredConn, proxied bool) *conn {
	c := &conn{ws: ws, in: in, framing: 1, readDone: make(chan struct{})}
	c.controls = &controls{write: c.writeControl}
	c.life = newLiveness(in.Conn, proxied, c.controls.ping)
	return c
}

// Greet agrees on the framing, which the hello names ([connection.Greeter]).
func (c *conn) Greet(h connection.Hello, _ *connection.HelloAnswer) (stamps bool) {
	c.framing, c.stamped = h.Framing, h.AEC && h.Framing == 2
	return c.stamped
}

// WriteText writes one text message.
func (c *conn) WriteText(message []byte) error { return c.write(websocket.TextMessage, message) }

// WriteAudio writes one packet in the agreed framing, with its timestamp if the
// device wants any.
func (c *conn) WriteAudio(packet []byte, stamp uint32) error {
	if !c.stamped {
		stamp = 0
	}
	framed, err := appendFrame(c.frame[:0], c.framing, stamp, packet)
	c.frame = framed
	if err != nil {
		c.session.Log().Warn("audio frame not sent", "err", err)
		return nil
	}
	c.life.beforeSound()
	return c.write(websocket.BinaryMessage, framed)
}

// write writes one message within the write deadline.
func (c *conn) write(kind int, message []byte) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return c.ws.WriteMessage(kind, message)
}

// writeControl writes a ping, pong or close frame. It may be called at the same
// time as all else.
func (c *conn) writeControl(kind int, payload []byte) error {
	return c.ws.WriteControl(kind, payload, time.Now().Add(writeTimeout))
}

// Close writes a close frame, waits a moment for the device to close its side, and
// closes the socket.
func (c *conn) Close(reason *connection.Reason) {
	c.life.stop()
	c.controls.close()
	if !reason.Gone {
		message := websocket.FormatCloseMessage(closeCode(reason.Kind), text.Cut(reason.Text, 100))
		err := c.ws.WriteControl(websocket.CloseMessage, message, time.Now().Add(closeTimeout))
		if err == nil || errors.Is(err, websocket.ErrCloseSent) { // the library answers broken frames by itself
			timer := time.NewTimer(closeTimeout)
			defer timer.Stop()
			select {
			case <-c.readDone:
			case <-timer.C:
			}
		}
	}
	c.ws.Close()
	c.controls.wait()
}

// closeCode is the code of a close frame.
func closeCode(k connection.Kind) int {
	switch k {
	case connection.TooBusy:
		return websocket.CloseTryAgainLater
	case connection.Internal:
		return websocket.CloseInternalServerErr
	case connection.Policy:
		return websocket.ClosePolicyViolation
	case connection.Protocol:
		return websocket.CloseProtocolError
	case connection.TooBig:
		return websocket.CloseMessageTooBig
	default:
		return websocket.CloseNormalClosure
	}
}

// The ends that only a WebSocket knows.
var (
	errSlow    error = &connection.Reason{Text: "a message took longer than 30 s", Kind: connection.Policy, Level: slog.LevelWarn}
	errSilent  error = &connection.Reason{Text: "no data and no pong for 60 s", Gone: true}
	errStalled error = &connection.Reason{Text: "device does not read: no pong while it is spoken to", Gone: true, Level: slog.LevelWarn}
	errFlooded error = &connection.Reason{Text: "device floods the connection", Kind: connection.Policy, Level: slog.LevelWarn, Err: errFlood}
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
		kind, payload := websocket.PongMessage, buf[:0]
		c.mu.Lock()
		switch {
		case c.closed || !c.hasPong && !c.hasPing:
			c.working = false
			c.mu.Unlock()
			return
		case c.hasPong:
			c.hasPong, payload = false, append(payload, c.pong...)
		default:
			c.hasPing, kind = false, websocket.PingMessage
		}
		c.mu.Unlock()
		if err := c.write(kind, payload); err != nil {
			c.fail(err)
			return
		}
	}
}

// close lets nothing more be written.
func (c *controls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// wait joins the goroutine. The socket must be closed.
func (c *controls) wait() { c.wg.Wait() }
