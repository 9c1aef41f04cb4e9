package websocket

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
)

// Read limits. What is larger ends the connection with close code 1009.
const (
	maxText     = 1 << 20
	maxBinary   = 64 << 10
	maxEarly    = 160 << 10        // of text before the hello, for which a registration of tools can stand
	messageTime = 30 * time.Second // from the first byte of a message to its last, whatever comes in between
	maxPromise  = 1 << 30          // bytes in a header: the library ends such a message itself, without a reason
	keepScratch = 512              // a buffer up to this size serves the next packet of sound; others are given back, as idle devices keep none
)

// Messages that are not read to their end.
var (
	errLimit  = errors.New("message over limit")
	errNoRoom = errors.New("no room for the message") // the session has ended
)

// Read hands the device's messages to the session until the socket ends. After the
// session has ended it goes on reading, and throws away, so that the device can
// hear the close frame ([connection.Reader]).
func (c *conn) Read(s *connection.Session) {
	defer close(c.readDone)
	c.listen(s)
	for {
		kind, r, err := c.next()
		if err == nil {
			err = c.take(kind, r)
		}
		if err != nil {
			c.leave(err)
			return
		}
	}
}

// listen prepares for the first message.
func (c *conn) listen(s *connection.Session) {
	c.session = s
	c.controls.fail = func(err error) { s.End(connection.WriteFailed(err)) }
	c.ws.SetPingHandler(func(payload string) error {
		if c.control(payload) {
			c.controls.answer(payload)
		}
		return c.extend()
	})
	c.ws.SetPongHandler(func(payload string) error {
		c.life.pong()
		c.control(payload)
		return c.extend()
	})
	c.ws.SetCloseHandler(func(int, string) error { return nil }) // Close says goodbye
	c.ws.SetReadLimit(maxPromise)
	c.life.start(func() { s.End(errStalled) })
}

// leave ends the session for an error of its socket.
func (c *conn) leave(err error) {
	c.session.End(readReason(err, !c.due.IsZero() && !time.Now().Before(c.due)))
	if _, closed := errors.AsType[*websocket.CloseError](err); !closed {
		_, _ = io.Copy(io.Discard, c.in.Conn)
	}
}

// control counts a control frame, and reports whether it may be answered.
func (c *conn) control(payload string) bool {
	c.in.skip(len(payload))
	return c.session.AllowControl()
}

// extend waits anew for the device's next sign of life, but not for longer than a
// message may take.
func (c *conn) extend() error {
	until := time.Now().Add(deadAfter)
	if !c.due.IsZero() && c.due.Before(until) {
		until = c.due
	}
	return c.ws.SetReadDeadline(until)
}

// next waits for the first frame of a message.
func (c *conn) next() (kind int, message io.Reader, err error) {
	c.due = time.Time{}
	if err := c.extend(); err != nil {
		return 0, nil, err
	}
	c.in.begin()
	return c.ws.NextReader()
}

// take reads one message and acts on it. Only errors of the socket come back.
func (c *conn) take(kind int, r io.Reader) error {
	c.due = time.Now().Add(messageTime)
	if err := c.extend(); err != nil {
		return err
	}
	if c.session.Ended() {
		return nil
	}
	limit := maxText
	if !c.met {
		limit = maxEarly
	}
	if kind == websocket.BinaryMessage {
		limit = maxBinary
		c.in.left -= maxText - maxBinary
	}
	defer c.session.Release()
	switch err := c.readAll(r, limit, c.session.Hold); {
	case errors.Is(err, errLimit):
		c.scratch = nil
		c.session.End(tooBig(kind, limit))
		return nil
	case errors.Is(err, errNoRoom):
		c.scratch = nil
		return nil
	case err != nil:
		return err
	case kind == websocket.BinaryMessage:
		c.onBinary(c.scratch)
	default:
		c.session.Text(c.scratch)
		if !c.met && c.session.Met() {
			c.met = true
			c.life.met()
		}
	}
	if kind == websocket.TextMessage || cap(c.scratch) > keepScratch {
		c.scratch = nil
	}
	return nil
}

// readAll reads one message of at most limit bytes into scratch. Memory grows with
// what comes, not with what a header promises, and while hold allows it.
func (c *conn) readAll(r io.Reader, limit int, hold func(size int) bool) error {
	c.scratch = c.scratch[:0]
	for {
		if len(c.scratch) == cap(c.scratch) {
			size := len(c.scratch) + max(keepScratch, len(c.scratch))
			if !hold(size) {
				return errNoRoom
			}
			grown := make([]byte, len(c.scratch), size)
			copy(grown, c.scratch)
			c.scratch = grown
		}
		n, err := r.Read(c.scratch[len(c.scratch):cap(c.scratch)])
		c.scratch = c.scratch[:len(c.scratch)+n]
		switch {
		case len(c.scratch) > limit:
			return errLimit
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// onBinary hands one packet of sound to the session.
func (c *conn) onBinary(message []byte) {
	packet, stamp, err := parseFrame(c.framing, message)
	if err != nil {
		c.session.AudioError(err, "framing", c.framing)
		return
	}
	c.session.Audio(packet, stamp)
}

// readReason makes the end of a session from an error of its socket. late says that
// a message had taken too long by then. Devices close
// the TCP connection without a close frame: that is a normal end.
func readReason(err error, late bool) error {
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
		switch closed.Code {
		case websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived:
			return &connection.Reason{Text: "device closed the connection"}
		case websocket.CloseAbnormalClosure:
			return connection.ErrLeft
		}
		return &connection.Reason{Text: "device closed the connection", Err: err}
	}
	switch {
	case errors.Is(err, errFlood):
		return errFlooded
	case errors.Is(err, websocket.ErrReadLimit):
		return tooBig(websocket.TextMessage, maxText)
	}
	// The WebSocket library wraps time-outs, so that only Timeout tells.
	if broken, ok := errors.AsType[net.Error](err); ok {
		if broken.Timeout() && late {
			return errSlow
		}
		if broken.Timeout() {
			return errSilent
		}
		return connection.ErrLeft
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed} {
		if errors.Is(err, end) {
			return connection.ErrLeft
		}
	}
	return &connection.Reason{Text: "device broke the WebSocket protocol", Kind: connection.Protocol, Level: slog.LevelWarn, Err: err}
}

// tooBig is the end of a device whose message is over a limit.
func tooBig(kind, limit int) error {
	name := "text"
	if kind == websocket.BinaryMessage {
		name = "binary"
	}
	return &connection.Reason{
		Text: "message too big", Kind: connection.TooBig, Level: slog.LevelWarn,
		Err: fmt.Errorf("%s message over the limit of %d bytes", name, limit),
	}
}
