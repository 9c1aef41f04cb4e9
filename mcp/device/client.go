// Package device speaks the standard dialect of MCP to a device: JSON-RPC 2.0 in
// the envelope of the device's own connection, through the official SDK
// (imported as sdk). [Client] is the source of one connection, [ListCache] the
// memory of tool lists that all clients share.
package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// Vision is where a device's camera tool sends its pictures.
type Vision struct {
	URL   string // plain http or https, reachable by the device
	Token string // "" for none
}

// LogValue keeps the token out of logs.
func (v Vision) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", v.URL), slog.Bool("token", v.Token != ""))
}

// Options describe one device. Send is needed; the rest has defaults.
type Options struct {
	// Send puts one JSON-RPC payload on the wire, inside the envelope. It never
	// waits long, may be called by many goroutines, and owns payload afterwards.
	Send func(payload json.RawMessage) error
	// Vision is told to the device; nil or an empty URL: no camera service.
	Vision *Vision
	// Name and Version are ours, for clientInfo; Name "" means xiaozhi.
	Name, Version string
	// ListRetry are the pauses before initialize and tools/list are tried again;
	// nil means 2, 4 and 8 s. After the last one Refresh tries again.
	ListRetry []time.Duration
	// Lists holds the list together with those of other clients; nil: each has its own.
	Lists *ListCache
	// Device is the Device-Id under which the cache remembers the list, so that
	// the tools are there at once when the device connects again; "": it does not.
	Device string
	// Log may be nil: nothing is logged.
	Log *slog.Logger
	// OnTools, if set, is called after each change of the list, from the
	// client's own goroutine. It must not call Stop.
	OnTools func()
}

// ServerInfo is what a device said of itself in its answer to initialize.
type ServerInfo struct {
	Name, Version string
	Protocol      string // the version that the session uses
}

// Client is a device that speaks the standard dialect, as a Source. One Client
// serves one connection of the device. All methods may be called at the same
// time; Deliver is made for the socket's reader and never waits.
type Client struct {
	options Options
	log     *slog.Logger
	inbox   chan *json.RawMessage // maxQueue; never closed. Pointers, for most of these queues lie idle
	queued  atomic.Int64          // bytes in inbox
	ids     atomic.Int64
	counts  counters
	refresh chan struct{} // 1: read the list if it is not complete
	relist  chan struct{} // 1: read the list again

	up   chan struct{} // closed when initialize is answered
	down chan struct{} // closed when the client ends

	wg      sync.WaitGroup // finish, from Start on
	readers sync.WaitGroup // run
	last    time.Time      // when the list was read last; of run

	mu       sync.Mutex
	read     func()             // begins run in its goroutine; set by Start
	reading  bool               // run has begun, and will look for reasons before it ends
	cancel   context.CancelFunc // nil before Start
	ended    bool               // for good: Stop was called or Start's ctx is done
	live     *liveSession       // nil before initialize is answered
	list     toolList
	info     ServerInfo
	recalled *ServerInfo // whose list it is, while it is the one remembered
}

// liveSession is an initialised SDK session and its link.
type liveSession struct {
	*sdk.ClientSession
	link *link
}

// counters are what went past without being of use.
type counters struct {
	dropped, broken, unknown, ignored, late, repaired atomic.Uint64
}

// Counts is a snapshot of a client's counters.
type Counts struct {
	Dropped  uint64 // payloads that found the queue full
	Broken   uint64 // payloads that could not be understood
	Unknown  uint64 // replies to no request
	Ignored  uint64 // notifications
	Late     uint64 // replies after their time-out
	Repaired uint64 // responses that were put right
}

// New makes the client of one connection. It does nothing before Start.
func New(o Options) *Client {
	if o.Name == "" {
		o.Name = "xiaozhi"
	}
	if o.ListRetry == nil {
		o.ListRetry = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{
		options: o,
		log:     o.Log,
		inbox:   make(chan *json.RawMessage, maxQueue),
		refresh: make(chan struct{}, 1),
		relist:  make(chan struct{}, 1),
		up:      make(chan struct{}),
		down:    make(chan struct{}),
	}
}

// Deliver takes one JSON-RPC payload that the device sent. It never waits and
// keeps a copy, so the caller may reuse payload. When maxQueue payloads or
// maxQueued bytes are waiting, the payload is dropped and counted: a stuck
// session must not stop the reader, which also brings the sound.
func (c *Client) Deliver(payload json.RawMessage) {
	size := int64(len(payload))
	if size <= rawjson.MaxSize && c.queued.Add(size) <= maxQueued {
		own := json.RawMessage(bytes.Clone(payload))
		select {
		case c.inbox <- &own:
			return
		default:
		}
	}
	if size <= rawjson.MaxSize {
		c.queued.Add(-size)
	}
	// One line for the first, the second, the fourth … so that a flood cannot flood the log.
	if n := c.counts.dropped.Add(1); bits.OnesCount64(n) == 1 {
		c.log.Warn("device mcp messages dropped", "count", n, "size", size)
	}
}

// Start begins initialize and tools/list and returns at once. The client ends
// when ctx ends or with Stop. A second Start does nothing.
func (c *Client) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return fmt.Errorf("start device mcp: %w", mcp.ErrClosed)
	}
	if c.cancel != nil {
		return nil
	}
	if c.options.Send == nil {
		return errors.New("start device mcp: options have no Send")
	}
	ctx, c.cancel = context.WithCancel(ctx)
	if old, ok := c.options.Lists.recall(c.options.Device); ok {
		c.list = toolList{tools: *old.tools, held: old.tools, complete: true, stale: true}
		c.recalled = &old.info
		c.log.Debug("device tools remembered", "tools", len(c.list.tools), "name", old.info.Name, "version", old.info.Version)
	}
	c.wg.Add(1)
	context.AfterFunc(ctx, func() {
		defer c.wg.Done()
		c.finish()
	})
	c.read = func() { c.readers.Go(func() { c.run(ctx) }) }
	c.wake(c.refresh)
	c.beginReading()
	return nil
}

// Stop ends the client, fails all pending calls with ErrClosed and waits for
// its goroutines. It may be called many times.
func (c *Client) Stop() error {
	c.end()
	c.mu.Lock()
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	c.wg.Wait()
	return nil
}

// end takes the tools away and fails the pending calls.
func (c *Client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		close(c.down)
	}
	c.ended = true
	c.list = toolList{}
	if c.live != nil {
		_ = c.live.link.Close()
	}
}

// Refresh reads the list again if the last try did not bring all of it. The
// connection calls it when a device starts to listen.
func (c *Client) Refresh() {
	if c.current() {
		return
	}
	c.wake(c.refresh)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginReading()
}

// ResetConnection forgets the list and reads it again.
func (c *Client) ResetConnection() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return fmt.Errorf("reset device mcp: %w", mcp.ErrClosed)
	}
	c.list, c.recalled = toolList{}, nil
	c.wake(c.relist)
	c.beginReading()
	return nil
}

// HasTool reports whether the device has the tool, or had it when it was last
// here and has not told us of its tools yet.
func (c *Client) HasTool(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list.has(name)
}

// GetAvailableTools lists the device's tools in its own order, those meant only
// for people too (Tool.UserOnly). Until the list has been read it is the one
// that the device had when it was last here, if that is remembered.
func (c *Client) GetAvailableTools() []mcp.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list.tools)
}

// IsReady reports whether a list was read on this connection; it may still be incomplete.
func (c *Client) IsReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list.read
}

// ServerInfo is what the device said of itself; zero before initialize is answered.
func (c *Client) ServerInfo() ServerInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// Counts is a snapshot of what was dropped, ignored and repaired so far.
func (c *Client) Counts() Counts {
	return Counts{
		Dropped: c.counts.dropped.Load(), Broken: c.counts.broken.Load(),
		Unknown: c.counts.unknown.Load(), Ignored: c.counts.ignored.Load(),
		Late: c.counts.late.Load(), Repaired: c.counts.repaired.Load(),
	}
}

// current reports whether the list is all that the device has, as far as we know.
func (c *Client) current() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list.complete && !c.list.stale
}

// wake puts a token into a signal channel unless one is there.
func (c *Client) wake(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// beginReading sees to it that somebody looks for the reasons to read the list.
// The caller holds mu.
func (c *Client) beginReading() {
	if c.read == nil || c.reading || c.ended {
		return
	}
	c.reading = true
	c.read()
}

// send hands a payload to the connection.
func (c *Client) send(payload json.RawMessage) error { return c.options.Send(payload) }

// nextID is an id that this connection has not used: 1 to maxID, then round.
func (c *Client) nextID() int64 { return (c.ids.Add(1)-1)%maxID + 1 }

// visionCapability is the member of a device's capabilities that the SDK lacks.
type visionCapability struct {
	URL   string `json:"url"`
	Token string `json:"token,omitempty"`
}

type clientCapabilities struct {
	Vision *visionCapability `json:"vision,omitempty"`
}

func (c *Client) capabilities() clientCapabilities {
	v := c.options.Vision
	if v == nil || v.URL == "" {
		return clientCapabilities{}
	}
	return clientCapabilities{Vision: &visionCapability{URL: v.URL, Token: v.Token}}
}
