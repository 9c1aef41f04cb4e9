package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// Read limits. What is larger ends the connection with close code 1009.
const (
	maxText     = 1 << 20
	maxBinary   = 64 << 10
	keepScratch = 512 // a larger buffer of one message is given back: most that comes is sound
	readBuffer  = 512 // holds a frame of sound; what is longer is read past it
)

// readLoop reads until the socket ends. After the connection has ended it goes
// on reading, and throws away, so that the peer can hear our close frame.
func (c *conn) readLoop(ctx context.Context) {
	for {
		if err := c.readOne(ctx); err != nil {
			c.end(readEnding(err))
			return
		}
	}
}

// readOne reads one message and acts on it. Only errors of the socket come back.
func (c *conn) readOne(ctx context.Context) error {
	if err := c.ws.SetReadDeadline(time.Now().Add(deadAfter)); err != nil {
		return err
	}
	kind, err := c.readMessage(ctx)
	switch {
	case errors.Is(err, errLimit):
		c.end(tooBig(nameOf(kind), limitOf(kind)))
		return nil
	case errors.Is(err, errFlood):
		c.end(errFlooding)
		return nil
	case err != nil:
		return err
	}
	if kind == websocket.BinaryMessage {
		c.onBinary(c.scratch)
	} else {
		c.onText(ctx, c.scratch)
	}
	if cap(c.scratch) > keepScratch {
		c.scratch = nil
	}
	return nil
}

// errLimit is a message that is too long.
var errLimit = errors.New("message over limit")

// limitOf is how long a message of a kind may be, in bytes.
func limitOf(kind int) int {
	if kind == websocket.BinaryMessage {
		return maxBinary
	}
	return maxText
}

// nameOf names a kind of message in the log.
func nameOf(kind int) string {
	if kind == websocket.BinaryMessage {
		return "binary"
	}
	return "text"
}

// readMessage reads one message, in however many pieces, into scratch, and
// answers what comes between them. Once the connection has ended there are no
// messages any more, only the end of the socket.
func (c *conn) readMessage(ctx context.Context) (kind int, err error) {
	c.scratch = c.scratch[:0]
	for pieces := 0; ; {
		h, err := c.in.next()
		if err != nil {
			return kind, err
		}
		if h.isControl() {
			if err := c.onControl(h); err != nil {
				return kind, err
			}
			continue
		}
		if ctx.Err() != nil {
			c.in.skip = h.length
			continue
		}
		if (h.op == opContinuation) != (pieces > 0) {
			return kind, fmt.Errorf("%w: a piece of no message, or a message inside another", errWire)
		}
		if pieces == 0 {
			kind = h.op
		} else if !c.affordsText(0) {
			c.in.skip = h.length
			return kind, errFlood
		}
		if pieces++; uint64(len(c.scratch))+h.length > uint64(limitOf(kind)) {
			c.in.skip = h.length
			return kind, errLimit
		}
		if c.scratch, err = c.in.payload(c.scratch, h); err != nil {
			return kind, err
		}
		if h.final {
			return kind, nil
		}
	}
}

// onControl acts on a ping, a pong or a close frame. The writer says goodbye,
// not the reader: a close frame is the error that it is.
func (c *conn) onControl(h frameHead) error {
	payload, err := c.in.take(int(h.length))
	if err != nil {
		return cutShort(err)
	}
	unmask(payload, h.key, 0)
	if h.op == websocket.CloseMessage {
		return closing(payload)
	}
	if h.op == websocket.PongMessage {
		c.lastPong.Store(int64(time.Since(c.began)))
	}
	if c.affordsText(0) && h.op == websocket.PingMessage {
		c.out.putPong(payload)
	}
	return c.ws.SetReadDeadline(time.Now().Add(deadAfter))
}

// readEnding says what an error of Read means. Devices close the TCP
// connection without a Close frame: that is a normal end.
func readEnding(err error) error {
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
		switch closed.Code {
		case websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived:
			return &ending{reason: "device closed the connection", code: websocket.CloseNormalClosure, level: slog.LevelInfo}
		case websocket.CloseAbnormalClosure:
			return errLeft
		}
		return &ending{reason: "device closed the connection", code: websocket.CloseNormalClosure, level: slog.LevelInfo, err: err}
	}
	// The WebSocket library wraps time-outs, so that only Timeout tells.
	if broken, ok := errors.AsType[net.Error](err); ok {
		if broken.Timeout() {
			return ErrSilent
		}
		return errLeft
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) {
		return errLeft
	}
	return brokenWire(err)
}

// onBinary hands one audio packet to the conversation.
func (c *conn) onBinary(message []byte) {
	c.counts.framesIn.Add(1)
	packet, stamp, err := parseFrame(c.framing, message)
	if !c.affordsSound(packet) {
		c.grumble("audio frame dropped: the device sends faster than anybody can speak")
		return
	}
	if c.talk == nil && c.door.Load() == nil || !c.dialect.hello.Load() {
		c.counts.early.Add(1)
		return
	}
	if err != nil {
		c.counts.broken.Add(1)
		c.grumble("audio frame dropped", "err", err, "framing", c.framing)
		return
	}
	if len(packet) > 0 {
		c.hear(packet, stamp)
	}
}
