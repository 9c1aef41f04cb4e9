package connection

import (
	"context"
	"errors"
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
	keepScratch = 4 << 10 // a larger buffer of one message is given back
	readBuffer  = 512     // holds a frame of sound; what is longer is read past it
)

// readLoop reads until the socket ends. After the connection has ended it goes
// on reading, and throws away, so that the peer can hear our close frame.
func (c *conn) readLoop(ctx context.Context) {
	c.ws.SetPingHandler(func(payload string) error {
		c.out.putPong(payload)
		return c.ws.SetReadDeadline(time.Now().Add(deadAfter))
	})
	c.ws.SetPongHandler(func(string) error {
		return c.ws.SetReadDeadline(time.Now().Add(deadAfter))
	})
	// The writer says goodbye, not the reader.
	c.ws.SetCloseHandler(func(int, string) error { return nil })
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
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	limit, name := maxText, "text"
	if kind == websocket.BinaryMessage {
		limit, name = maxBinary, "binary"
	}
	c.scratch, err = readUpTo(r, c.scratch[:0], limit)
	if errors.Is(err, errLimit) {
		c.end(tooBig(name, limit))
		return nil
	}
	if err != nil {
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

// errLimit is what readUpTo returns for a message over its limit.
var errLimit = errors.New("message over limit")

// readUpTo appends all of r to buf. More than limit bytes is errLimit.
func readUpTo(r io.Reader, buf []byte, limit int) ([]byte, error) {
	for {
		if len(buf) > limit {
			return buf, errLimit
		}
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, max(512, len(buf)))...)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			if len(buf) > limit {
				return buf, errLimit
			}
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
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
	if c.talk == nil && c.door.Load() == nil || !c.dialect.hello.Load() {
		c.counts.early.Add(1)
		return
	}
	packet, err := parseFrame(c.framing, message)
	if err != nil {
		c.counts.broken.Add(1)
		c.grumble("audio frame dropped", "err", err, "framing", c.framing)
		return
	}
	if len(packet) > 0 {
		c.hear(packet)
	}
}
