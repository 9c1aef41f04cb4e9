package connection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/rawjson"
)

// toolset owns the device's own tools in every dialect that it speaks: it makes,
// starts, feeds and stops them. Its methods are for the reader, but for stop and
// lightReady.
type toolset struct {
	opts *Options
	link Link // without Send
	down *downlink
	life *lifetime
	look *device.Vision // where pictures may be sent; nil: nowhere

	asked   bool  // NewLight was called
	unasked Tools // the MCP client of a device whose hello has not offered MCP yet

	mu     sync.Mutex
	closed bool
	begun  []mcp.Source
	mcp    Tools  // nil: none. Written by the reader, which reads without mu
	light  Light  // the same that the device registers itself
	things Things // the same of older firmware
}

func newToolset(s *Session) *toolset {
	t := &toolset{
		opts: &s.registry.opts, down: s.down, life: s.life,
		link: Link{Log: s.log, BaseURL: s.peer.BaseURL},
	}
	if path := t.opts.VisionPath; path != "" {
		t.look = &device.Vision{URL: s.peer.BaseURL + path, Token: s.token}
	}
	return t
}

// start makes the tools of a device that begins to talk. offered says that a
// hello has offered MCP; before a hello the MCP client is made, but not started.
// Not ok: the session ends.
func (t *toolset) start(session wire.Session, offered bool) (sources []mcp.Source, ok bool) {
	if (offered || !t.down.dialects.greeted.Load()) && t.opts.NewTools != nil {
		link := t.link
		link.Vision = t.look
		link.Send = func(p json.RawMessage) error { return t.down.sendRPC(p, t.down.dialects.answersBare(p)) }
		if tools := t.opts.NewTools(session, link); tools != nil {
			if t.unasked = tools; !t.offerMCP(offered) {
				return nil, false
			}
			sources = append(sources, tools)
		}
	}
	if !t.startLight(session) {
		return nil, false
	}
	if t.light != nil {
		sources = append(sources, t.light)
	}
	if t.opts.NewThings != nil {
		link := t.link
		link.Send = func(p json.RawMessage) error { return t.down.sendWrapped(iotMessage{t.down.session, "iot", p}) }
		if things := t.opts.NewThings(session, link); things != nil {
			if !t.run("device things", things, func() { t.things = things }) {
				return nil, false
			}
			sources = append(sources, things)
		}
	}
	return sources, true
}

// offerMCP starts the MCP client that was made, if a hello offers MCP. False: the
// session ends.
func (t *toolset) offerMCP(offered bool) bool {
	tools := t.unasked
	if !offered || tools == nil {
		return true
	}
	return t.run("device tools", tools, func() { t.mcp = tools })
}

// startLight makes and starts the tools that the device registers itself, once.
// False: the session ends.
func (t *toolset) startLight(session wire.Session) bool {
	if t.asked || t.opts.NewLight == nil {
		return true
	}
	t.asked = true
	link := t.link
	link.Send = func(p json.RawMessage) error { return t.down.sendRPC(p, t.down.dialects.bare.Load()) }
	light := t.opts.NewLight(session, link)
	return light == nil || t.run("device tools", light, func() { t.light = light })
}

// run keeps a source and starts it, unless the session is ending: what was
// started is stopped by stop. False: the session ends.
func (t *toolset) run(what string, source mcp.Source, keep func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.life.cause()
	if err == nil && !t.closed {
		keep()
		t.begun = append(t.begun, source)
		err = source.Start(t.life.context())
	}
	if err != nil {
		t.life.end(failed(what+" cannot start", err))
	}
	return err == nil
}

// stop fails the calls that wait for a device that will not answer.
func (t *toolset) stop() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock() // none begins any more
	for _, source := range t.begun {
		t.life.guard("tools", func() {
			if err := source.Stop(); err != nil {
				t.link.Log.Debug("device tools did not stop cleanly", "err", err)
			}
		})
	}
}

func (t *toolset) refresh() {
	if t.mcp != nil {
		t.mcp.Refresh()
	}
}

// register hands over a registration of the light dialect. ready reports whether
// there are tools now. Not ok: they cannot be used.
func (t *toolset) register(session wire.Session, payload json.RawMessage) (ready, ok bool) {
	if !t.startLight(session) || t.light == nil {
		return false, false
	}
	t.light.Deliver(payload)
	return t.light.IsReady(), true
}

func (t *toolset) lightReady() bool {
	t.mu.Lock()
	light := t.light
	t.mu.Unlock()
	return light != nil && light.IsReady()
}

// deliver hands a payload that is no registration to its dialect, and reports
// whether there is one.
func (t *toolset) deliver(head rpc, payload json.RawMessage, bare bool) bool {
	switch {
	case t.forLight(head):
		if head.method != "" {
			t.down.dialects.bare.Store(bare)
		}
		t.light.Deliver(payload)
	case t.mcp != nil:
		if bare && head.method != "" && head.id != nil {
			t.down.dialects.askedBare(head.id)
		}
		t.mcp.Deliver(payload)
	default:
		return false
	}
	return true
}

// forLight reports whether a payload is for the light dialect: it answers a call
// of that dialect, or no other could want it. A number as an id, even in quotes,
// is one of the standard dialect.
func (t *toolset) forLight(m rpc) bool {
	if t.light == nil {
		return false
	}
	if id, ok := rawjson.String(m.id); ok && m.method == "" && t.light.Owns(id) {
		return true
	}
	return t.mcp == nil && t.light.IsReady()
}

// deliverThings hands over descriptors and states of older firmware
// (docs/protocol.md 6), and reports whether they are wanted.
func (t *toolset) deliverThings(w thingsWire) bool {
	if t.things == nil {
		return false
	}
	t.things.Deliver(w.Descriptors, w.States)
	return true
}

// listening tells the things of older firmware that the device begins to listen.
func (t *toolset) listening() {
	if t.things != nil {
		t.things.Listening()
	}
}

// methodRegister is the method that only the light dialect has.
const methodRegister = "mcp/registerTools"

// maxAsked is how many bare requests of a device are remembered until they are
// answered; the oldest is forgotten, and its answer goes in the envelope.
const maxAsked = 16

// dialects tells apart how a device speaks JSON-RPC, and frames what it is sent
// accordingly. There are two on one connection: the standard one (docs/protocol.md
// 5), where the server asks, and the light one (docs/mcp.md, Dialects), where the
// device registers its tools. Frames of either come bare or in the envelope of
// docs/protocol.md 5.1; answers go as the questions came. A device that registers
// and never says hello is sent nothing but JSON-RPC frames: it has no speaker.
// Its methods may be called at the same time.
type dialects struct {
	greeted atomic.Bool   // a hello was answered
	bare    atomic.Bool   // the light dialect goes without the envelope
	muted   atomic.Uint64 // the turn of which something was kept back, since there was no hello

	mu    sync.Mutex
	asked []string // ids of bare requests to be answered bare, at most maxAsked
}

// mutes reports whether a turn's ordinary messages and sound are kept from the
// device: it has said no hello, or said it in the middle of that turn.
func (d *dialects) mutes(turn uint64) bool {
	if !d.greeted.Load() {
		d.muted.Store(turn)
		return true
	}
	return turn != 0 && d.muted.Load() == turn
}

// rpc holds the members of a JSON-RPC payload that decide its way.
type rpc struct {
	method string // "" for an answer
	id     json.RawMessage
	params json.RawMessage
}

// readRPC reads a payload as far as it is readable.
func readRPC(payload json.RawMessage) rpc {
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil {
		return rpc{}
	}
	m := rpc{params: fields["params"]}
	m.method, _ = rawjson.String(fields["method"])
	if rawjson.Present(fields["id"]) {
		m.id = fields["id"]
	}
	return m
}

// askedBare remembers a bare request of the device to the standard dialect.
func (d *dialects) askedBare(id json.RawMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked = append(d.asked, string(id)); len(d.asked) > maxAsked {
		d.asked = slices.Delete(d.asked, 0, 1)
	}
}

// answersBare reports whether a payload of ours answers a bare request, once.
func (d *dialects) answersBare(payload json.RawMessage) bool {
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

// addressIn is the mac_addr of a registration as a Device-Id, in its one spelling. ""
// when there is none that can be used.
func addressIn(params json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil {
		return ""
	}
	address, _ := rawjson.String(bytes.TrimSpace(fields["mac_addr"]))
	if CheckID("mac_addr", strings.TrimSpace(address)) != nil {
		return ""
	}
	return identity.Canonical(address)
}

// maxID is how long a Device-Id or Client-Id may be, in bytes.
const maxID = 128

// CheckID refuses ids that are longer than 128 bytes, of dots alone, or not printable ASCII. name
// is for the error.
func CheckID(name, id string) error {
	if len(id) > maxID {
		return fmt.Errorf("%s is longer than %d bytes", name, maxID)
	}
	if id != "" && strings.Trim(id, ".") == "" {
		return fmt.Errorf("%s is of dots alone, to which no path leads", name)
	}
	for _, c := range id {
		if c < ' ' || c > '~' {
			return fmt.Errorf("%s holds signs that are not printable ASCII", name)
		}
	}
	return nil
}
