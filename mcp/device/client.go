// Package device speaks the standard dialect of MCP to a device: JSON-RPC 2.0 in the envelope of
// the device's own connection, through the official SDK (imported as sdk). [Client] is the source
// of one connection, [ListCache] the memory of tool lists that all clients share.
package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

const (
	maxQueue       = 64                     // payloads waiting for the session; more are dropped
	maxQueued      = 4 << 20                // bytes waiting for the session; more are dropped
	maxPages       = 32                     // pages of one tools/list (docs/protocol.md 5.3)
	maxBlocks      = 64                     // content blocks of one result
	maxID          = 1<<31 - 1              // firmware reads ids into 32 bits (docs/protocol.md 5.1)
	maxLate        = 64                     // given-up requests whose late reply is still recognised
	maxLogged      = 256                    // bytes of a device's error in the log
	requestTimeout = 15 * time.Second       // of initialize and of one page of tools/list
	relistPause    = time.Second            // between two lists that the device asked for
	relistGather   = 100 * time.Millisecond // for further signs that the list has changed
)

// listRetry are the pauses before initialize and tools/list are tried again. After
// the last one Refresh tries again.
var listRetry = [...]time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}

// Vision is the service that a device's camera tool sends its pictures to.
type Vision struct {
	URL   string `json:"url"`             // plain http or https, reachable by the device
	Token string `json:"token,omitempty"` // "" for none
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
	// Lists holds the list together with those of other clients; nil: each has its own.
	Lists *ListCache
	// Device is the Device-Id under which the cache remembers the list, so that
	// the tools are there at once when the device connects again; "": it does not.
	Device string
	// Keep, if set, takes the list in a form for [Client.Restore] whenever it is another than
	// before, from the client's own goroutine. It must not wait.
	Keep func(doc string)
	// OnList, if set, is told how far the list is read, from the client's own goroutine. It must not wait.
	OnList func(Progress)
	// Log may be nil: nothing is logged.
	Log *slog.Logger
	// OnTools, if set, is called after each change of the list, from the
	// client's own goroutine. It must not call Stop.
	OnTools func()
}

// Progress tells of the tools that were read so far.
type Progress struct {
	Tools int
	Pages int           // that have come
	Whole bool          // there are no more
	Err   error         // why the next page did not come; nil: it did
	Again time.Duration // until it is asked for again; 0: when the device listens next
}

// ServerInfo is the identity that a device gives in its answer to initialize.
type ServerInfo struct {
	Name, Version string
	Protocol      string // the version that the session uses
}

// Client is a device that speaks the standard dialect, as an [mcp.Source]. It owns the
// session of one connection of the device: its inbox, its ids, the calls that run. What the
// device offers is its lister's. All methods may be called at the same time.
type Client struct {
	options Options
	log     *slog.Logger
	inbox   inbox
	ids     atomic.Int64
	dropped atomic.Uint64 // payloads that found the inbox full
	tools   *lister
	up      chan struct{}  // closed when initialize is answered
	down    chan struct{}  // closed when the client ends
	wg      sync.WaitGroup // finish, from Start on

	mu     sync.Mutex
	cancel context.CancelFunc // nil before Start
	ended  bool               // for good: Stop was called or Start's ctx is done
	live   *liveSession       // nil before initialize is answered
	info   ServerInfo
}

// liveSession is an initialised SDK session and its link.
type liveSession struct {
	*sdk.ClientSession
	link *link
}

// New makes the client of one connection. It does nothing before Start.
func New(o Options) *Client {
	if o.Lists == nil {
		o.Lists = NewListCache("")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		options: o,
		log:     o.Log,
		inbox:   inbox{payloads: make(chan *json.RawMessage, maxQueue)},
		up:      make(chan struct{}),
		down:    make(chan struct{}),
	}
	c.tools = &lister{client: c, log: c.log, refresh: make(chan struct{}, 1), relist: make(chan struct{}, 1)}
	return c
}

// Deliver takes a copy of one JSON-RPC payload that the device sent. It never waits: when
// maxQueue payloads or maxQueued bytes do, the payload is dropped and counted, for a stuck
// session must not stop the reader, which also brings the sound.
func (c *Client) Deliver(payload json.RawMessage) {
	if c.inbox.put(payload) {
		return
	}
	// One line for the first, the second, the fourth … so that a flood cannot flood the log.
	if n := c.dropped.Add(1); bits.OnesCount64(n) == 1 {
		c.log.Warn("device mcp messages dropped", "count", n, "size", len(payload))
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
	c.wg.Add(1)
	context.AfterFunc(ctx, func() {
		defer c.wg.Done()
		c.finish()
	})
	c.tools.start(ctx)
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
	c.tools.end()
	if c.live != nil {
		_ = c.live.link.Close()
	}
}

// finish closes the session and waits until the SDK's goroutines are done with it.
func (c *Client) finish() {
	c.end()
	c.tools.wg.Wait()
	c.mu.Lock()
	live, cancel := c.live, c.cancel
	c.mu.Unlock()
	cancel()
	if live != nil {
		_ = live.Close()
	}
}

// Refresh reads the list again if the last try did not bring all of it. The
// connection calls it when a device starts to listen.
func (c *Client) Refresh() {
	if !c.tools.current() {
		c.tools.want(c.tools.refresh)
	}
}

// ResetConnection forgets the list and reads it again.
func (c *Client) ResetConnection() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return fmt.Errorf("reset device mcp: %w", mcp.ErrClosed)
	}
	c.tools.reset()
	return nil
}

// HasTool reports whether the device has the tool, or had it on its last
// connection while the list of this one is not read yet.
func (c *Client) HasTool(name string) bool { return c.tools.has(name) }

// GetAvailableTools lists the device's tools in its own order, those meant only
// for people too (Tool.UserOnly). Until the list has been read it is the one
// that the device had when it was last here, if that is remembered.
func (c *Client) GetAvailableTools() []mcp.Tool { return c.tools.all() }

// IsReady reports whether a list was read on this connection; it may still be incomplete.
func (c *Client) IsReady() bool { return c.tools.ready() }

// ServerInfo returns the identity of the device; zero before initialize is answered.
func (c *Client) ServerInfo() ServerInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

// nextID is an id that this connection has not used: 1 to maxID, then round.
func (c *Client) nextID() int64 { return (c.ids.Add(1)-1)%maxID + 1 }

// inbox holds the payloads that wait for the session: at most maxQueue of them,
// of at most maxQueued bytes.
type inbox struct {
	payloads chan *json.RawMessage // never closed. Pointers, for most of these queues lie idle
	bytes    atomic.Int64          // in payloads
}

// put takes a copy of payload; false: there is no room for it. It never waits.
func (b *inbox) put(payload json.RawMessage) bool {
	size := int64(len(payload))
	if size > rawjson.MaxSize {
		return false
	}
	if b.bytes.Add(size) <= maxQueued {
		own := json.RawMessage(bytes.Clone(payload))
		select {
		case b.payloads <- &own:
			return true
		default:
		}
	}
	b.bytes.Add(-size)
	return false
}
