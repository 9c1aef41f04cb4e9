package connection

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// A device may speak two dialects of JSON-RPC on one socket: the standard one
// (section 5), where we ask, and the light one (seed 000), where it registers.
// Frames of either come bare or in the envelope of section 5.1; answers go as
// the questions came. This file tells them apart and frames what goes out.

// methodRegister is the method that only the light dialect has.
const methodRegister = "mcp/registerTools"

// maxAsked is how many bare requests of a device are remembered until they are
// answered; the oldest is forgotten, and its answer goes in the envelope.
const maxAsked = 16

// rpc is what must be known of a JSON-RPC payload to hand it on.
type rpc struct {
	method string // "" for an answer
	id     json.RawMessage
	params json.RawMessage
}

// readRPC reads a payload as far as it can be read.
func readRPC(payload json.RawMessage) rpc {
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil {
		return rpc{}
	}
	m := rpc{params: fields["params"]}
	m.method, _ = stringIn(fields["method"])
	if present(fields["id"]) {
		m.id = fields["id"]
	}
	return m
}

// onMCP hands a JSON-RPC payload to the source that it is for.
func (c *conn) onMCP(ctx context.Context, m inbound) {
	payload := m.Payload
	if !m.Bare {
		var err error
		if payload, err = payloadIn(m.Payload); err != nil {
			c.counts.broken.Add(1)
			c.grumble("message dropped", "err", err)
			return
		}
	}
	head := readRPC(payload)
	switch {
	case head.method == methodRegister:
		c.onRegister(ctx, head, payload, m.Bare)
	case c.talk == nil:
		c.counts.early.Add(1)
		c.log.Debug("message before hello ignored", "type", m.Type)
	case c.isLight(head):
		if head.method != "" {
			c.dialect.bare.Store(m.Bare)
		}
		c.light.Deliver(payload)
	case c.tools != nil:
		if m.Bare && head.method != "" && head.id != nil {
			c.dialect.askedBare(head.id)
		}
		c.tools.Deliver(payload)
	default:
		c.counts.unknown.Add(1)
		c.log.Debug("mcp message of a device without mcp ignored")
	}
}

// isLight reports whether a payload, which is no registration, is for the light
// dialect: it answers a call of that dialect, or nobody else could want it. A
// number as an id, even in quotes, is one of the standard dialect.
func (c *conn) isLight(m rpc) bool {
	if c.light == nil {
		return false
	}
	if id, ok := stringIn(m.id); ok && m.method == "" && c.light.Owns(id) {
		return true
	}
	return c.tools == nil && c.light.IsReady()
}

// askedBare remembers a bare request of the device to the standard dialect.
func (d *dialect) askedBare(id json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked = append(d.asked, string(id)); len(d.asked) > maxAsked {
		d.asked = slices.Delete(d.asked, 0, 1)
	}
}

// answersBare reports whether a payload of ours answers a bare request, once.
func (d *dialect) answersBare(payload json.RawMessage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) == 0 {
		return false
	}
	m := readRPC(payload)
	if m.method != "" || m.id == nil {
		return false
	}
	i := slices.Index(d.asked, string(m.id))
	if i < 0 {
		return false
	}
	d.asked = slices.Delete(d.asked, i, i+1)
	return true
}

// sendPayload queues one JSON-RPC payload of the standard dialect (Link.Send).
func (c *conn) sendPayload(payload json.RawMessage) error {
	return c.sendRPC(payload, c.dialect.answersBare(payload))
}

// sendLight queues one frame of the light dialect (Link.Send).
func (c *conn) sendLight(frame json.RawMessage) error {
	return c.sendRPC(frame, c.dialect.bare.Load())
}

// sendRPC queues a JSON-RPC payload, as it is or in the envelope.
func (c *conn) sendRPC(payload json.RawMessage, bare bool) error {
	if bare {
		return c.sendText(payload)
	}
	return c.sendWrapped(mcpMessage{c.session, "mcp", payload})
}

// addressIn is the mac_addr of a registration as a Device-Id: in lower case, a
// MAC with colons. "" when there is none that can be used.
func addressIn(params json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil {
		return ""
	}
	address, _ := stringIn(bytes.TrimSpace(fields["mac_addr"]))
	address = strings.ToLower(strings.TrimSpace(address))
	if address == "" || checkID("mac_addr", address) != nil {
		return ""
	}
	digits := strings.NewReplacer("-", "", ":", "", ".", "", " ", "").Replace(address)
	if len(digits) != 12 || strings.Trim(digits, "0123456789abcdef") != "" {
		return address
	}
	pairs := make([]string, 0, 6)
	for pair := range slices.Chunk([]byte(digits), 2) {
		pairs = append(pairs, string(pair))
	}
	return strings.Join(pairs, ":")
}
