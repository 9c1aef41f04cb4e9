package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
)

const defaultMaxDevices = 1000

// Conversation is one device's conversation as its session sees it.
type Conversation interface {
	// Run holds the conversation. It is called once (not at all if the connection
	// ends first), and returns soon after ctx ends (context.Cause says why) or
	// when the conversation is over; either ends the connection. A connection
	// that replaces another one of the device does not wait for it: Run must
	// wait itself for what it shares with the older conversation.
	Run(ctx context.Context) error
	// Post hands over what the device did. It never blocks; it may be called
	// before Run begins, after it has returned, and by several goroutines at a time.
	// An error means that the queue of control events overran: the connection ends.
	Post(ev wire.Event) error
	// Hear hands over one packet of the microphone, by one goroutine at a time.
	// The memory of p.Data may be used again as soon as Hear returns.
	Hear(p wire.Packet)
}

// Tools are the tools of one device, reached through its connection. The
// connection calls Start right after the server hello and Stop at its end.
type Tools interface {
	mcp.Source
	// Deliver hands over one JSON-RPC payload from the device. It never blocks;
	// payload belongs to the callee. Called by one goroutine.
	Deliver(payload json.RawMessage)
	// Refresh is called when the device starts to listen: a list of tools that
	// could not be read is worth another try. It never blocks.
	Refresh()
}

// Light are the tools that a device registers itself, in the light dialect, reached
// through its connection. The connection calls Start before the first Deliver and
// Stop at its end. It has no tools before the device registers.
type Light interface {
	mcp.Source
	// Deliver hands over one JSON-RPC frame of the device and acts on it before
	// it returns. It never waits; frame belongs to the callee. Called by one goroutine.
	Deliver(frame json.RawMessage)
	// Owns reports whether an answer with this id is for a call of these tools.
	Owns(id string) bool
}

// Things are the tools of older firmware, which describes itself as things
// (docs/protocol.md 6), reached through its connection. The connection calls Start
// right after the server hello and Stop at its end.
type Things interface {
	mcp.Source
	// Deliver hands over the members of one iot message, nil for one that is not
	// there. It never blocks; both belong to the callee. Called by one goroutine.
	Deliver(descriptors, states json.RawMessage)
	// Listening notes that the device begins to listen, before which it has told what
	// has changed. It never blocks.
	Listening()
}

// Link gives the tools of a device their part of its connection.
type Link struct {
	// Send queues one payload in the envelope of its kind: JSON-RPC of Tools
	// (docs/protocol.md 5.1; bare, if it answers a bare request), an array of commands of
	// Things (docs/protocol.md 6); of Light in the framing that the device used last. It
	// does not wait for the device. An error means that the connection is over.
	Send func(payload json.RawMessage) error
	// Log names the device and the connection in every line.
	Log *slog.Logger
	// BaseURL is how this device reaches us by HTTP, without a last slash:
	// "http://192.168.1.10:8000".
	BaseURL string
	// Vision is where its camera may send pictures, with the token of this
	// connection; nil: pictures are not looked at.
	Vision *device.Vision
}

// Settings are those of one device. Empty fields set nothing.
type Settings struct {
	Name     string
	Language string // a tag of BCP 47
	Voice    string
}

// Load measures how busy the process is. Its methods may be called at the same time.
type Load interface {
	// TooBusy reports whether there is no capacity for one device more, beside so many.
	TooBusy(devices int) bool
	// Lag is how late the process does what is due.
	Lag() time.Duration
}

// Report says what has become of a session: Hello or End is set.
type Report struct {
	DeviceID string  // "" of a device that has not named itself
	Serial   uint64  // of its connection
	Remote   string  // address
	Hello    *Hello  // that of a device which registers its tools instead has nothing
	Raw      []byte  // the fields of the hello as they came, as JSON
	Busy     bool    // the device was turned away after its hello, for the server is too busy
	End      *Reason // why the session ended
}

// Options make a [Registry]. NewConversation must be set.
type Options struct {
	// NewConversation makes the conversation of a device that has said hello, or has
	// registered its tools without one (the light dialect knows no hello). It must
	// not wait for anything: the reader stands still meanwhile. sources are the
	// device's own tools, in whatever dialects it speaks; there may be none.
	// The callee owns the slice. An error ends the connection.
	NewConversation func(s wire.Session, out wire.Outbox, sources []mcp.Source) (Conversation, error)
	// NewTools makes the MCP client of a device whose hello says features.mcp.
	// It must not wait, nor must Start. nil, or a nil result: its tools are not used.
	// For a device that registers before its hello it is made early, and started
	// when that hello comes.
	NewTools func(s wire.Session, link Link) Tools
	// NewLight makes the tools that a device registers itself; every device has
	// them, empty at first. It must not wait. nil, or a nil result: registrations
	// are ignored, and a device without Device-Id is refused.
	NewLight func(s wire.Session, link Link) Light
	// NewThings makes the things of any device: a hello does not tell whether there
	// are some. It must not wait, nor must Start. nil, or a nil result: iot messages
	// are ignored.
	NewThings func(s wire.Session, link Link) Things
	// Identify says who a device is and how it is treated, when it connects or names
	// itself. It must not wait. nil: every device is who it says it is.
	Identify func(v identity.Visit) identity.Guest
	// Asked is told that a device has asked where to connect, with the language that it named,
	// or "". It must not wait. nil: nobody is told.
	Asked func(deviceID, language string)
	// Settings looks up a device by its id. nil: nothing is known of any.
	Settings func(deviceID string) Settings
	// Report is told what becomes of sessions. It must not wait. nil: nobody is told.
	Report func(Report)
	// VisionPath is where cameras may upload pictures. "": nowhere.
	VisionPath string

	// NewFarewell makes the conversation of a device that is turned away: it says so,
	// and hangs up with cause, which is [ErrBusy] or holds an [identity.Away]. It must
	// not wait. nil: such connections just end.
	NewFarewell func(s wire.Session, out wire.Outbox, cause error) Conversation
	// Load says when there is no capacity for new devices. nil: there always is.
	Load Load

	MaxDevices int          // 0 means 1000; more are refused
	Language   string       // a tag of BCP 47 for all; "" or "auto": that of the device's OTA request, else zh
	Log        *slog.Logger // nil: discarded
}

func (o Options) withDefaults() Options {
	o.MaxDevices = cmp.Or(o.MaxDevices, defaultMaxDevices)
	if o.Identify == nil {
		o.Identify = func(v identity.Visit) identity.Guest { return identity.Guest{ID: v.Address} }
	}
	if o.Settings == nil {
		o.Settings = func(string) Settings { return Settings{} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
