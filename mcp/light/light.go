// Package light speaks the light dialect: a device registers its tools by itself
// and takes calls as JSON-RPC requests of its own three methods.
package light

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// Options describe one device that speaks the light dialect. Send is needed; the rest has defaults.
type Options struct {
	// Send puts one JSON-RPC frame on the wire, as it is or in the envelope. It
	// never waits long, may be called by many goroutines, and owns frame afterwards.
	Send func(frame json.RawMessage) error
	// DeviceID is the device that the connection belongs to: a registration that
	// names another address is refused. "": any address is taken.
	DeviceID string
	// HasLocal reports whether this server has a tool of that name itself, so
	// that a device may ask for it (main_type local). nil: it has none.
	HasLocal func(name string) bool
	// Log may be nil: nothing is logged.
	Log *slog.Logger
	// OnTools, if set, is called after each registration, by the goroutine that
	// called Deliver. It must not wait.
	OnTools func()
}

// Source is a device that speaks the light dialect (docs/mcp.md, Dialects 1), as an [mcp.Source].
// It owns the list that the device has registered on one connection and the calls that wait for an
// answer. The device pushes its list with mcp/registerTools and cannot be asked for it; the source
// is empty until then. It has no goroutines. All methods may be called at the same time.
type Source struct {
	options Options
	log     *slog.Logger
	mark    string // of this connection, in every id of a call

	mu         sync.Mutex
	started    bool
	ended      bool // for good
	registered bool
	tools      []mcp.Tool
	number     uint64 // of the last call
	pending    map[string]*pendingCall
	late       []string       // ids in pending that were given up, oldest first
	logged     map[string]int // what the device did wrong, by message
}

// pendingCall is a call that the device has not answered.
type pendingCall struct {
	tool    string
	sent    time.Time
	answer  chan answer // size 1; closed by Stop
	givenUp bool
}

// answer is the device's answer to a call.
type answer struct {
	result any
	err    error
}

// New makes the source of one connection.
func New(o Options) *Source {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HasLocal == nil {
		o.HasLocal = func(string) bool { return false }
	}
	return &Source{
		options: o, log: o.Log,
		mark:    strings.ToLower(rand.Text()[:6]),
		pending: make(map[string]*pendingCall),
	}
}

// Start makes what the device has registered, and will register, available. A
// second Start does nothing.
func (l *Source) Start(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return fmt.Errorf("start light device: %w", mcp.ErrClosed)
	}
	if l.options.Send == nil {
		return errors.New("start light device: options have no Send")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start light device: %w", err)
	}
	l.started = true
	return nil
}

// Stop takes the tools away and fails all pending calls with ErrClosed. It may
// be called many times.
func (l *Source) Stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.tools, l.late = true, nil, nil
	for _, call := range l.pending {
		close(call.answer)
	}
	clear(l.pending)
	return nil
}

// ResetConnection changes nothing: the list is the device's to push, there is
// no way to ask for it, and the last one that it pushed is the best there is.
func (l *Source) ResetConnection() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return fmt.Errorf("reset light device: %w", mcp.ErrClosed)
	}
	return nil
}

// HasTool reports whether the device has registered the tool.
func (l *Source) HasTool(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.has(name)
}

// has is HasTool for a caller that holds mu.
func (l *Source) has(name string) bool {
	return l.started && slices.ContainsFunc(l.tools, func(t mcp.Tool) bool { return t.Name == name })
}

// GetAvailableTools lists the device's tools as it has registered them last.
func (l *Source) GetAvailableTools() []mcp.Tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started {
		return nil
	}
	return slices.Clone(l.tools)
}

// IsReady reports whether the device has registered. It may have no tools.
func (l *Source) IsReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started && l.registered && !l.ended
}

// Owns reports whether an answer with this id is for a call of this source,
// even one that was given up. An id is the text of a JSON string.
func (l *Source) Owns(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[id] != nil
}

// Deliver acts on one frame of the device: a registration, an answer, or something else. It
// never waits for the device and does not keep frame. Frames are taken in the order of the
// calls, so one goroutine should make them.
func (l *Source) Deliver(frame json.RawMessage) {
	f, err := parse(frame)
	if err != nil {
		l.logSome(l.log.Warn, "light device frame dropped", "err", err, "size", len(frame))
		return
	}
	switch f.method {
	case "":
		l.answered(f)
	case methodRegister:
		l.register(f)
	default:
		l.other(f)
	}
}

// logSome logs the first, the second, the fourth … of a kind of message, so that a
// device cannot flood the log, and no kind hides another.
func (l *Source) logSome(log func(string, ...any), message string, args ...any) {
	l.mu.Lock()
	if l.logged == nil {
		l.logged = make(map[string]int)
	}
	l.logged[message]++
	n := l.logged[message]
	l.mu.Unlock()
	if bits.OnesCount(uint(n)) == 1 {
		log(message, append(args, "count", n)...)
	}
}

// other answers a request that is none of the dialect.
func (l *Source) other(f inbound) {
	l.log.Debug("light device request ignored", "method", text.Shorten(f.method, 64), "id", string(f.id))
	switch {
	case f.id == nil:
	case f.method == "ping":
		l.reply(response{Version: version2, ID: f.id, Result: struct{}{}})
	default:
		l.refuse(f.id, codeMethodNotFound, "Method not found")
	}
}

// reply sends an answer to the device.
func (l *Source) reply(v any) {
	frame, err := rawjson.Marshal(v)
	if err == nil {
		err = l.options.Send(frame)
	}
	if err != nil {
		l.log.Debug("answer to a light device not sent", "err", err)
	}
}

// refuse answers a request with an error.
func (l *Source) refuse(id json.RawMessage, code int64, message string) {
	l.reply(response{Version: version2, ID: id, Error: &rpcError{code, message}})
}
