package connection

import (
	"context"

	"xiaozhi/internal/wire"
)

// post hands an event to the conversation, or to who speaks in its place.
func (c *conn) post(ev wire.Event) {
	c.attend(ev)
	if d := c.door.Load(); d != nil {
		d.note(ev)
		return
	}
	if err := c.talk.Post(ev); err != nil {
		c.end(overrun(err))
	}
}

// hear hands a microphone packet to the conversation. packet is the reader's.
func (c *conn) hear(packet []byte, stamp uint32) {
	if c.door.Load() != nil {
		return
	}
	c.talk.Hear(wire.Packet{Data: packet, Stamp: stamp})
}

// onText acts on one text message.
func (c *conn) onText(ctx context.Context, data []byte) {
	c.counts.textIn.Add(1)
	if !c.affordsText(len(data)) {
		c.grumble("message dropped: the device sends more than it can mean", "bytes", len(data))
		return
	}
	m, err := parseText(data)
	if err != nil {
		c.counts.broken.Add(1)
		c.grumble("message dropped", "err", err, "bytes", len(data))
		return
	}
	switch {
	case m.Type == "hello":
		c.onHello(ctx, m.hello)
	case m.Type == "mcp":
		c.onMCP(ctx, m)
	case c.talk == nil && c.door.Load() == nil:
		c.counts.early.Add(1)
		c.log.Debug("message before hello ignored", "type", clip(m.Type, 32))
	case m.Type == "listen":
		c.onListen(m)
	case m.Type == "abort":
		reason, _ := stringIn(m.Reason)
		c.post(wire.Abort{Reason: reason})
	case m.Type == "iot":
		c.onIoT(m)
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
		c.post(wire.ListenStart{Mode: c.modeIn(m)})
		if c.tools != nil {
			c.tools.Refresh()
		}
	case "stop":
		c.post(wire.ListenStop{})
	case "detect":
		text, ok := stringIn(m.Text)
		if !ok && present(m.Text) {
			c.grumble("detect text is not a string", "text", clip(string(m.Text), 64))
		}
		c.post(wire.Detect{Text: text})
	default:
		c.counts.unknown.Add(1)
		c.log.Debug("listen message of unknown state ignored", "state", clip(string(m.State), 32))
	}
}

// modeIn reads a listen mode; missing or unknown ones are auto.
func (c *conn) modeIn(m inbound) wire.Mode {
	text, _ := stringIn(m.Mode)
	switch mode := wire.Mode(text); mode {
	case wire.Auto, wire.Manual, wire.Realtime:
		return mode
	}
	if present(m.Mode) {
		c.grumble("unknown listen mode, auto is used", "mode", clip(string(m.Mode), 32))
	}
	return wire.Auto
}

// onIoT hands descriptors and states of older firmware to the device's things
// (section 6).
func (c *conn) onIoT(m inbound) {
	if c.things == nil {
		c.counts.unknown.Add(1)
		c.log.Debug("iot message ignored")
		return
	}
	c.things.Deliver(m.things.Descriptors, m.things.States)
}
