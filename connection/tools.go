package connection

import (
	"encoding/json"
	"sync"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
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
		link.Send, link.Vision = t.down.sendStandard, t.look
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
		link.Send = t.down.sendCommands
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
	link.Send = t.down.sendLight
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
	var sources []mcp.Source
	if t.mcp != nil {
		sources = append(sources, t.mcp)
	}
	if t.things != nil {
		sources = append(sources, t.things)
	}
	if t.light != nil {
		sources = append(sources, t.light)
	}
	t.mu.Unlock()
	for _, source := range sources {
		t.life.guard("tools", func() {
			if err := source.Stop(); err != nil {
				t.link.Log.Debug("device tools did not stop cleanly", "err", err)
			}
		})
	}
}

// refresh tells the MCP client that the device starts to listen.
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

// lightReady reports whether the device has registered tools.
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
	if id, ok := stringIn(m.id); ok && m.method == "" && t.light.Owns(id) {
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
