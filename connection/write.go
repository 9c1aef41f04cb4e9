package connection

import (
	"context"
	"time"

	"github.com/gorilla/websocket"
)

// writeBuffer holds a frame of sound with its header, in bytes. What is longer
// is written past it; a larger buffer would lie idle in every connection.
const writeBuffer = 512

// writerRest is how long a writer with nothing to write waits for more, before
// it ends and gives its stack back: longer than any pause inside a reply's sound.
const writerRest = time.Second

// work begins a writer (outbox.work).
func (c *conn) work(ctx context.Context) {
	c.wg.Go(func() {
		rested := false
		defer func() {
			if !rested {
				close(c.writeDone)
			}
		}()
		c.guard("writer", func() { rested = c.writeLoop(ctx) })
	})
}

// writeLoop writes what is queued until there has been nothing for a while, or
// until the outbox is closed and empty, then our close frame. A write that fails
// ends the connection. It reports whether it only rests.
func (c *conn) writeLoop(ctx context.Context) (rested bool) {
	linger := time.NewTimer(writerRest)
	defer linger.Stop()
	for {
		over := c.out.isClosed()
		if err := c.writeQueued(); err != nil {
			c.end(writeFailed(err))
			return false
		}
		if over {
			c.sayGoodbye(ctx)
			return false
		}
		linger.Reset(writerRest)
		select {
		case <-c.out.ready:
		case <-linger.C:
			if c.out.rest() {
				return true
			}
		}
	}
}

// ping asks for a ping, again and again until the connection ends.
func (c *conn) ping() {
	if c.out.putPing() {
		c.pinger.Reset(pingEvery)
	}
}

// sayGoodbye writes what was queued at the very end, and the close frame.
// Nobody is told if that fails: the connection is over anyway.
func (c *conn) sayGoodbye(ctx context.Context) {
	end := endingOf(context.Cause(ctx))
	if end.gone {
		return
	}
	if err := c.writeQueued(); err != nil {
		c.log.Debug("last messages were not written", "err", err)
		return
	}
	message := websocket.FormatCloseMessage(end.code, clip(end.reason, 100))
	if err := c.writeControl(websocket.CloseMessage, message); err != nil {
		c.log.Debug("close frame was not written", "err", err)
	}
}

// writeQueued writes until nothing is queued. Pongs and pings that are due go
// between the messages, so that a long reply does not hold them up.
func (c *conn) writeQueued() error {
	for {
		if err := c.writePong(); err != nil {
			return err
		}
		if c.out.takePing() {
			if err := c.writeControl(websocket.PingMessage, nil); err != nil {
				return err
			}
		}
		it, frame, stamp, ok := c.out.take(c.packet)
		if !ok {
			return nil
		}
		if frame != nil {
			c.packet = frame
			if err := c.writeFrame(frame, stamp); err != nil {
				return err
			}
			continue
		}
		if err := c.writeItem(it); err != nil {
			return err
		}
	}
}

// writeItem writes one control entry: its frames, then its text.
func (c *conn) writeItem(it item) error {
	for _, frame := range it.frames {
		if err := c.writeFrame(frame, c.out.nextStamp()); err != nil {
			return err
		}
	}
	c.counts.textOut.Add(1)
	if it.ends {
		c.packet, c.frame = nil, nil // most devices are silent most of the time
	}
	return c.write(websocket.TextMessage, it.text)
}

// writeFrame writes one Opus packet in the agreed framing, with its timestamp if
// the device wants any.
func (c *conn) writeFrame(packet []byte, stamp uint32) error {
	if !c.stamped {
		stamp = 0
	}
	framed, err := appendFrame(c.frame[:0], c.framing, stamp, packet)
	c.frame = framed
	if err != nil {
		c.log.Warn("audio frame not sent", "err", err)
		return nil
	}
	if err := c.askForLife(); err != nil {
		return err
	}
	c.counts.framesOut.Add(1)
	return c.write(websocket.BinaryMessage, framed)
}

// writePong answers the newest ping, if one waits.
func (c *conn) writePong() error {
	var buf [125]byte
	payload, due := c.out.takePong(buf[:0])
	if !due {
		return nil
	}
	return c.writeControl(websocket.PongMessage, payload)
}

// writeControl writes a ping, pong or close frame.
func (c *conn) writeControl(kind int, payload []byte) error {
	return c.ws.WriteControl(kind, payload, time.Now().Add(writeTimeout))
}

// write writes one message within the write deadline.
func (c *conn) write(kind int, message []byte) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return c.ws.WriteMessage(kind, message)
}
