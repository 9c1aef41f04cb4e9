package connection

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp/light"
)

// ErrNoIdentity ends a connection that says hello and has not said who it is.
var ErrNoIdentity error = &ending{
	reason: "no Device-Id, and no mcp/registerTools that names the device", code: websocket.ClosePolicyViolation, level: slog.LevelWarn,
}

// dialect is how a device speaks to us. A peer that registers its tools and
// never says hello is told nothing but JSON-RPC frames: it has no speaker.
type dialect struct {
	hello atomic.Bool   // a hello was answered
	bare  atomic.Bool   // the light dialect goes without the envelope
	muted atomic.Uint64 // the turn of which something was kept back, since there was no hello

	tried bool // NewLight was asked; of the reader
	named bool // the device took its identity from its registration; of the reader

	mu    sync.Mutex
	asked []string // ids of bare requests to be answered bare, at most maxAsked
}

// namelessKey stands for the Device-Id of a device that has not named itself.
// No Device-Id can be like it: those are printable.
func namelessKey() string { return "\x00" + rand.Text() }

// onRegister takes a registration of tools at any time. As the first that a
// device says, it stands for its hello (seed 000 has none), and without a
// Device-Id its mac_addr is the device's identity.
func (c *conn) onRegister(ctx context.Context, head rpc, payload json.RawMessage, bare bool) {
	c.dialect.bare.Store(bare)
	if c.server.opts.NewLight == nil {
		c.counts.unknown.Add(1)
		c.grumble("registration of tools ignored: there is no light dialect here")
		return
	}
	if c.who.deviceID == "" {
		address := addressIn(head.params)
		if address == "" {
			c.grumble("registration refused: neither a Device-Id nor a mac_addr says who the device is")
			c.refuseNameless(head.id)
			return
		}
		c.server.name(c, address)
	}
	if !c.startLight(ctx, c.sessionOf()) || c.light == nil {
		return
	}
	c.light.Deliver(payload)
	if c.talk == nil && c.light.IsReady() {
		c.log.Info("device registered before any hello")
		c.startTalk(ctx, hello{Uplink: uplinkDefault})
	}
}

// refuseNameless answers a registration of nobody.
func (c *conn) refuseNameless(id json.RawMessage) {
	if _, ok := stringIn(id); !ok {
		return
	}
	frame, err := light.Refusal(id, "mac_addr is missing or no address, and the connection has no Device-Id")
	if err == nil {
		err = c.sendLight(frame)
	}
	if err != nil {
		c.log.Debug("refusal not sent", "err", err)
	}
}

// startLight makes and starts the tools that the device registers itself, once.
// False: the connection ends.
func (c *conn) startLight(ctx context.Context, session wire.Session) bool {
	if c.dialect.tried || c.server.opts.NewLight == nil {
		return true
	}
	c.dialect.tried = true
	light := c.server.opts.NewLight(session, Link{Log: c.log, Send: c.sendLight, BaseURL: c.who.baseURL})
	if light == nil {
		return true
	}
	return c.startSource(ctx, "device tools", func() error {
		c.light = light
		return light.Start(ctx)
	})
}

// name gives a connection the identity that its device has told, in the place
// of an older connection of the device, which ends. Of the reader.
func (s *Server) name(c *conn, deviceID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns[c.who.key] == c {
		delete(s.conns, c.who.key)
		if old := s.conns[deviceID]; old != nil {
			old.end(ErrReplaced)
		}
		s.conns[deviceID] = c
	}
	c.who.key, c.who.deviceID, c.dialect.named = deviceID, deviceID, true
	c.log.Info("device has named itself", "named", deviceID)
}

// sendAI tells a device of the light dialect what is said (seed 000, 5), and
// reports whether m is a message of that dialect.
func (c *conn) sendAI(m wire.Message) bool {
	var kind string
	switch m.Kind {
	case wire.MessageChunk:
		kind = light.Chunk
	case wire.MessageFinal:
		kind = light.Final
	case wire.MessageThought:
		kind = light.Thought
	default:
		return false
	}
	if c.light == nil || !c.light.IsReady() {
		return true
	}
	frame, err := light.Message(kind, m.Text)
	if err == nil {
		err = c.sendLight(frame)
	}
	if err != nil {
		c.log.Debug("ai message not sent", "kind", kind, "err", err)
	}
	return true
}

// mute reports whether a turn's ordinary messages and sound are kept from the
// device: it has said no hello, or said it in the middle of that turn.
func (c *conn) mute(turn uint64) bool {
	if !c.dialect.hello.Load() {
		c.dialect.muted.Store(turn)
		return true
	}
	return turn != 0 && c.dialect.muted.Load() == turn
}
