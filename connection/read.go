package connection

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/agent"
	"xiaozhi/mcp"
)

// Read limits. What is larger ends the connection with close code 1009.
const (
	maxText     = 1 << 20
	maxBinary   = 64 << 10
	keepScratch = 64 << 10 // a larger read buffer is given back
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
	if c.talk == nil {
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
		c.post(agent.Frame{Packet: bytes.Clone(packet)})
	}
}

// post hands an event to the conversation.
func (c *conn) post(ev agent.Event) {
	if err := c.talk.Post(ev); err != nil {
		c.end(failed("conversation took no more events", err))
	}
}

// onText acts on one text message.
func (c *conn) onText(ctx context.Context, data []byte) {
	c.counts.textIn.Add(1)
	m, err := parseText(data)
	if err != nil {
		c.counts.broken.Add(1)
		c.grumble("message dropped", "err", err, "bytes", len(data))
		return
	}
	switch {
	case m.Type == "hello":
		c.onHello(ctx, m.hello)
	case c.talk == nil:
		c.counts.early.Add(1)
		c.log.Debug("message before hello ignored", "type", clip(m.Type, 32))
	case m.Type == "listen":
		c.onListen(m)
	case m.Type == "abort":
		reason, _ := stringIn(m.Reason)
		c.post(agent.Abort{Reason: reason})
	case m.Type == "mcp":
		c.onMCP(m)
	case m.Type == "iot":
		// Descriptors and states of older firmware (section 6) are not used yet.
		c.log.Debug("iot message ignored")
	default:
		c.counts.unknown.Add(1)
		c.log.Debug("message of unknown type ignored", "type", clip(m.Type, 32))
	}
}

// onListen reads the three listen messages (section 3.2).
func (c *conn) onListen(m inbound) {
	state, _ := stringIn(m.State)
	switch state {
	case "start":
		c.post(agent.ListenStart{Mode: c.modeIn(m)})
	case "stop":
		c.post(agent.ListenStop{})
	case "detect":
		text, ok := stringIn(m.Text)
		if !ok && present(m.Text) {
			c.grumble("detect text is not a string", "text", clip(string(m.Text), 64))
		}
		c.post(agent.Detect{Text: text})
	default:
		c.counts.unknown.Add(1)
		c.log.Debug("listen message of unknown state ignored", "state", clip(string(m.State), 32))
	}
}

// modeIn reads a listen mode; missing or unknown ones are auto.
func (c *conn) modeIn(m inbound) agent.Mode {
	text, _ := stringIn(m.Mode)
	switch mode := agent.Mode(text); mode {
	case agent.Auto, agent.Manual, agent.Realtime:
		return mode
	}
	if present(m.Mode) {
		c.grumble("unknown listen mode, auto is used", "mode", clip(string(m.Mode), 32))
	}
	return agent.Auto
}

// onMCP hands a JSON-RPC payload to the device's MCP client.
func (c *conn) onMCP(m inbound) {
	payload, err := payloadIn(m.Payload)
	if err != nil {
		c.counts.broken.Add(1)
		c.grumble("message dropped", "err", err)
		return
	}
	if c.tools == nil {
		c.counts.unknown.Add(1)
		c.log.Debug("mcp message of a device without mcp ignored")
		return
	}
	c.tools.Deliver(payload)
}

// onHello answers the first hello, before anything else is done, and starts
// the conversation. There is exactly one answer per connection (section 2.3).
func (c *conn) onHello(ctx context.Context, w helloWire) {
	if c.talk != nil {
		c.grumble("second hello ignored")
		return
	}
	h := w.read(c.who.protocol)
	if len(h.Odd) > 0 {
		c.log.Warn("hello has fields that are not as they should be", "fields", h.Odd)
	}
	c.framing, c.stamped = h.Framing, h.AEC && h.Framing == 2
	reply, err := encode(newHelloReply(c.session))
	if err != nil {
		c.end(failed("hello cannot be written", err))
		return
	}
	c.out.putText(reply)
	close(c.helloed)
	c.log.Info("device said hello", "framing", h.Framing, "mcp", h.MCP, "aec", h.AEC, "rate", h.Uplink.Rate, "frame", h.Uplink.Frame)
	c.startTalk(ctx, h)
}

// startTalk makes the device's MCP client and its conversation.
func (c *conn) startTalk(ctx context.Context, h hello) {
	set := c.server.opts.Settings(c.who.deviceID)
	session := agent.Session{
		DeviceID: c.who.deviceID, ClientID: c.who.clientID, SessionID: c.session,
		Language: c.server.languageFor(c.who.deviceID, set.Language),
		Name:     set.Name, Voice: set.Voice, AEC: h.AEC,
	}
	var device mcp.Source
	if h.MCP && c.server.opts.NewTools != nil {
		tools := c.server.opts.NewTools(session, Link{Send: c.sendPayload, BaseURL: c.who.baseURL})
		if tools != nil {
			if err := c.startTools(ctx, tools); err != nil {
				c.end(failed("device tools cannot start", err))
				return
			}
			device = tools
		}
	}
	talk, err := c.server.opts.NewTalk(session, c, device)
	if err != nil {
		c.end(failed("conversation cannot start", err))
		return
	}
	c.talk = talk
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return
	}
	c.talking = true
	c.wg.Go(func() {
		defer close(c.talkOver)
		c.guard("conversation", func() { c.runTalk(ctx, talk) })
	})
}

// startTools starts the client, unless the connection is ending: what is
// started is stopped by finish.
func (c *conn) startTools(ctx context.Context, tools Tools) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return context.Cause(ctx)
	}
	c.tools = tools
	return tools.Start(ctx)
}

// runTalk runs the conversation, once that of the connection which this one
// replaces is over.
func (c *conn) runTalk(ctx context.Context, talk Talk) {
	if c.previous != nil {
		if !within(handover, c.previous) {
			c.log.Warn("conversation of the old connection takes long to end")
		}
	}
	if err := talk.Run(ctx); err != nil && ctx.Err() == nil {
		c.end(failed("conversation failed", err))
		return
	}
	c.end(errDone)
}
