package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
)

// defaultMaxDevices is how many devices may be connected at once unless told otherwise.
const defaultMaxDevices = 1000

// Talk is one device's conversation as a connection sees it.
type Talk interface {
	// Run holds the conversation. It is called once (not at all if the connection
	// ends first), and returns soon after ctx ends (context.Cause says why) or
	// when the conversation is over; either ends the connection. A connection
	// that replaces another one of the device does not wait for it: Run must
	// wait itself for what it shares with the older conversation.
	Run(ctx context.Context) error
	// Post hands over what the device did. It never blocks; it may be called
	// before Run begins and after it has returned, by one goroutine at a time.
	// An error means that the queue of control events overran: the connection ends.
	Post(ev wire.Event) error
	// Hear hands over one packet of the microphone, under the same conditions.
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

// Light are the tools that a device registers itself (the light dialect, seed
// 000), reached through its connection. The connection calls Start before the
// first Deliver and Stop at its end. It has no tools before the device registers.
type Light interface {
	mcp.Source
	// Deliver hands over one JSON-RPC frame of the device and acts on it before
	// it returns. It never waits; frame belongs to the callee. Called by one goroutine.
	Deliver(frame json.RawMessage)
	// Owns reports whether an answer with this id is for a call of these tools.
	Owns(id string) bool
}

// Things are what older firmware describes of itself (section 6), reached
// through its connection. The connection calls Start right after the server
// hello and Stop at its end.
type Things interface {
	mcp.Source
	// Deliver hands over the members of one iot message, nil for one that is not
	// there. It never blocks; both belong to the callee. Called by one goroutine.
	Deliver(descriptors, states json.RawMessage)
}

// Link is what the tools of a device may use of its connection.
type Link struct {
	// Send queues one payload in the envelope of its kind: JSON-RPC of Tools
	// (section 5.1; bare, if it answers a bare request), an array of commands of
	// Things (section 6); of Light in the framing that the device used last. It
	// does not wait for the device. An error means that the connection is over.
	Send func(payload json.RawMessage) error
	// Log names the device and the connection in every line.
	Log *slog.Logger
	// BaseURL is how this device reaches us by HTTP, without a last slash:
	// "http://192.168.1.10:8000".
	BaseURL string
	// Vision is where its camera may send pictures, with the token of this
	// connection; nil: nobody looks at them.
	Vision *device.Vision
}

// Auth says whether devices must show a token.
type Auth struct {
	Enabled bool
	Token   string // may not be empty when Enabled; handed out by OTA, never logged
}

// LogValue keeps the token out of logs.
func (a Auth) LogValue() slog.Value { return slog.BoolValue(a.Enabled) }

// Settings is what the config says of one device. Empty fields say nothing.
type Settings struct {
	Name     string
	Language string // "zh" or "en"
	Voice    string
}

// Options make a Server. Only NewTalk has no useful zero value.
type Options struct {
	// NewTalk makes the conversation of a device that has said hello, or has
	// registered its tools without one (seed 000 knows no hello). It must
	// not wait for anything: the reader stands still meanwhile. sources are the
	// device's own tools, in whatever dialects it speaks; there may be none.
	// The callee owns the slice. An error ends the connection.
	NewTalk func(s wire.Session, out wire.Outbox, sources []mcp.Source) (Talk, error)
	// NewTools makes the MCP client of a device whose hello says features.mcp.
	// It must not wait, nor must Start. nil, or a nil result: its tools are not used.
	// For a device that registers before its hello it is made early, and started
	// when that hello comes.
	NewTools func(s wire.Session, link Link) Tools
	// NewLight makes the tools that a device registers itself; every device has
	// them, empty at first. It must not wait. nil, or a nil result: registrations
	// are ignored, and a device without Device-Id is refused.
	NewLight func(s wire.Session, link Link) Light
	// NewThings makes the things of any device: a hello does not tell who has
	// some. It must not wait, nor must Start. nil, or a nil result: iot messages
	// are ignored.
	NewThings func(s wire.Session, link Link) Things
	// Settings looks up a device, by its Device-Id in lower case. nil: nothing is known of any.
	Settings func(deviceID string) Settings
	// Explainer looks at what the devices' cameras upload. nil: there is no such path.
	Explainer Explainer

	// Notice is what the door itself says in a language, "zh" or "en". It must not
	// wait. nil: nothing is said, such connections just end.
	Notice func(kind NoticeKind, language string) Notice

	// MaxLateness is how late the process may do what is due, nine times of ten
	// in 5 s, before new devices are told that it is too busy (Server.Watch). 0: it may be any.
	MaxLateness time.Duration

	Auth       Auth           // zero: everybody is let in
	PublicURL  string         // http(s)://host[:port][/prefix]; empty: what the request's Host says
	TrustProxy bool           // true: X-Forwarded-Proto, -Host and -Port count
	MaxDevices int            // 0 means 1000; more are refused before the upgrade
	Zone       *time.Location // the clock that devices show; nil means time.Local
	Language   string         // "zh" or "en" for all; "" or "auto": what the device's OTA request said, else zh
	Framing    int            // binary framing 1, 2 or 3 that OTA tells devices to use; 0 means 1
	Log        *slog.Logger   // nil: discarded
}

// withDefaults fills in zero values and refuses what cannot work.
func (o Options) withDefaults() (Options, *url.URL, error) {
	if o.NewTalk == nil {
		return o, nil, errors.New("connection: Options.NewTalk is missing")
	}
	if o.Auth.Enabled && o.Auth.Token == "" {
		return o, nil, errors.New("connection: auth is enabled but the token is empty")
	}
	if o.Framing < 0 || o.Framing > 3 {
		return o, nil, fmt.Errorf("connection: framing %d is not 1, 2 or 3", o.Framing)
	}
	if o.MaxDevices < 0 {
		return o, nil, fmt.Errorf("connection: max devices %d is negative", o.MaxDevices)
	}
	if o.MaxLateness < 0 {
		return o, nil, fmt.Errorf("connection: max lateness %v is negative", o.MaxLateness)
	}
	switch o.Language {
	case "", "auto", "zh", "en":
	default:
		return o, nil, fmt.Errorf("connection: language %q is not auto, zh or en", o.Language)
	}
	public, err := parsePublicURL(o.PublicURL)
	if err != nil {
		return o, nil, err
	}
	if o.Framing == 0 {
		o.Framing = 1
	}
	if o.MaxDevices == 0 {
		o.MaxDevices = defaultMaxDevices
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Settings == nil {
		o.Settings = func(string) Settings { return Settings{} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, public, nil
}

// parsePublicURL reads the address that devices are told. ws and wss are taken
// for http and https. Empty gives nil.
func parsePublicURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("connection: public url: %w", err)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "http"
	case "https", "wss":
		u.Scheme = "https"
	default:
		return nil, fmt.Errorf("connection: public url %q does not begin with http:// or https://", text)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("connection: public url %q names no host", text)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("connection: public url %q may hold only scheme, host, port and path", u.Redacted())
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}
