package app

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/record"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/router"
)

// liveDevices are the devices that hold a conversation now: the answer to
// gateway.Devices. Its methods may be called at the same time.
type liveDevices struct {
	journal  *router.Journal
	onChange func(id string) // a device came, left or has other tools or states; nil: nobody asks
	onWords  func(id string) // something was said; nil: nobody asks

	mu   sync.Mutex
	byID map[string]*deviceTalk
}

func newLiveDevices() *liveDevices {
	return &liveDevices{journal: router.NewJournal(), byID: map[string]*deviceTalk{}}
}

// deviceTalk is a conversation with the toolbox that it alone uses.
type deviceTalk struct {
	*agent.Conversation
	tape    *record.Tape // nil: it is not recorded
	tools   *router.Router
	sources []mcp.Source // of the device itself
	words   *words
	session wire.Session
	since   time.Time
	live    *liveDevices
}

// Run holds the conversation, then joins the calls that are still running.
func (t *deviceTalk) Run(ctx context.Context) (err error) {
	recorded := t.tape.Run(ctx)
	defer func() { recorded(err) }()
	defer t.tools.Close()
	t.live.add(t)
	defer t.live.remove(t)
	return t.Conversation.Run(ctx)
}

// Post hands over what the device did, and records it.
func (t *deviceTalk) Post(ev wire.Event) error {
	t.tape.Event(ev)
	return t.Conversation.Post(ev)
}

// Hear hands over a microphone packet, and records it.
func (t *deviceTalk) Hear(p wire.Packet) {
	t.tape.Hear(p)
	t.Conversation.Hear(p)
}

func (l *liveDevices) add(t *deviceTalk) {
	l.mu.Lock()
	l.byID[t.session.DeviceID] = t
	l.mu.Unlock()
	l.changed(t.session.DeviceID)
}

// remove takes a conversation away, unless a newer one of the device is there.
func (l *liveDevices) remove(t *deviceTalk) {
	l.mu.Lock()
	if l.byID[t.session.DeviceID] == t {
		delete(l.byID, t.session.DeviceID)
	}
	l.mu.Unlock()
	l.changed(t.session.DeviceID)
}

// List is by id.
func (l *liveDevices) List() []gateway.Device {
	l.mu.Lock()
	talks := make([]*deviceTalk, 0, len(l.byID))
	for _, t := range l.byID {
		talks = append(talks, t)
	}
	l.mu.Unlock()
	slices.SortFunc(talks, func(a, b *deviceTalk) int { return strings.Compare(a.session.DeviceID, b.session.DeviceID) })
	out := make([]gateway.Device, len(talks))
	for i, t := range talks {
		out[i] = gateway.Device{
			ID: t.session.DeviceID, Name: t.session.Name, SessionID: t.session.SessionID,
			Language: t.session.Language, Since: t.since, Tools: len(t.tools.Offers()),
		}
	}
	return out
}

// Offers are the tools of a device that is connected.
func (l *liveDevices) Offers(id string) ([]router.Offer, bool) {
	t, ok := l.find(id)
	if !ok {
		return nil, false
	}
	return t.tools.Offers(), true
}

// Call runs a tool of a device.
func (l *liveDevices) Call(ctx context.Context, id string, call mcp.Call) (mcp.ActionResponse, string) {
	t, ok := l.find(id)
	if !ok {
		err := inWords(mcp.WithInfo(ctx, mcp.Info{Language: call.Language}), agent.ErrOver)
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}, ""
	}
	return t.Call(ctx, call)
}

// Calls are the last tool calls of a device.
func (l *liveDevices) Calls(id string) []router.Record { return l.journal.Calls(id) }
