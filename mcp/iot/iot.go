// Package iot makes tools of the things that older firmware describes: their
// properties are read, their methods called, without an MCP of the device.
package iot

import (
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

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// Options describe one device. Send is needed; the rest has defaults.
type Options struct {
	// Send puts an array of commands on the wire, inside {"type":"iot"}. It never
	// waits long, may be called by many goroutines, and owns commands afterwards.
	Send func(commands json.RawMessage) error
	// Cache holds what the device DeviceID has said beyond this connection; nil,
	// or no DeviceID: it is forgotten with the connection.
	Cache    *Cache
	DeviceID string
	// Keep, if set, takes what is known in a form for [Source.Restore] whenever it is other than
	// before, from the goroutine that called Deliver. It must not wait.
	Keep func(doc string)
	// Kinds are the overrides of [mcp.ExplainKind], by the names that methods have as tools.
	Kinds map[string]mcp.Kind
	// Log may be nil: nothing is logged.
	Log *slog.Logger
	// OnChange, if set, is called after each message, by the goroutine that
	// called Deliver: things or states may be others now. It must not wait.
	OnChange func()
}

// Source is the things of a device of older firmware as an [mcp.Source]
// (docs/protocol.md 6): every property is a tool that reads it, every method a
// tool that calls it. A lamp's are self.lamp.get_power and self.lamp.turn_on.
//
// The protocol has no replies. So a property is answered from what the device has reported, and a
// method that is a query returns with the next report of its thing. Firmware reports before it
// begins to listen, so hardly ever within a turn: only a device that is known to report sooner is worth such a kind.
//
// A control returns true as soon as its command is with the connection. Where its success is assumed ([mcp.Assumed])
// it lets go of the device then, and returns once it is seen whether the state has changed as it should: with a
// *ToolError if the device reports another state, or begins to listen without having reported any change. Where no
// property is known that the method changes, or how it was before, or the device does not listen, nothing is claimed.
//
// One Source serves one connection. It has no goroutines; all methods may be
// called at the same time.
type Source struct {
	options Options
	log     *slog.Logger
	home    *home
	odd     atomic.Uint64 // parts of messages that could not be used
	closed  chan struct{} // closed by Stop

	mu        sync.Mutex
	started   bool
	ended     bool
	described bool // at least one thing, on this connection
	reported  bool // at least one state, on this connection
	waiters   map[*waiter]struct{}
	expecting []*expected // at most maxExpected, the oldest first
}

// waiter is a query that waits for the next report of its thing.
type waiter struct {
	thing  string
	sets   []string            // properties that have the name of an argument: the report must be about one
	report chan map[string]any // 1: the properties that changed
}

// concerns reports whether a report may be what the query waits for, and not
// the late effect of a command before it.
func (w *waiter) concerns(r report) bool {
	if w.thing != r.thing {
		return false
	}
	if len(w.sets) == 0 || len(r.changed) == 0 {
		return true
	}
	return slices.ContainsFunc(w.sets, func(name string) bool { _, ok := r.changed[name]; return ok })
}

// New makes the source of one connection. What the cache knows of the
// device is there at Start, marked as stale until the device says it again.
func New(o Options) *Source {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Cache == nil {
		o.Cache = NewCache(1)
	}
	known, ok := o.Cache.homes.Get(o.DeviceID)
	if !ok {
		known = &home{kinds: o.Kinds}
	}
	known.setKinds(o.Kinds)
	known.markStale()
	return &Source{
		options: o, log: o.Log, home: known,
		closed: make(chan struct{}), waiters: make(map[*waiter]struct{}),
	}
}

// SetKinds puts other overrides in the place of those of the options. It may be called at any time.
func (t *Source) SetKinds(kinds map[string]mcp.Kind) { t.home.setKinds(kinds) }

// Deliver takes the members descriptors and states of one message; each may be
// nil. It never waits and keeps nothing of either. What cannot be used is left
// out and logged; the rest counts. It is for one goroutine.
func (t *Source) Deliver(descriptors, states json.RawMessage) {
	select {
	case <-t.closed:
		return
	default:
	}
	changed := rawjson.Present(descriptors) && t.describe(descriptors)
	if rawjson.Present(states) && t.take(states) {
		changed = true
	}
	t.keep(changed)
	if t.options.OnChange != nil {
		t.options.OnChange()
	}
}

// States are the last reports of all things on this connection, by thing and property, as
// JSON values. The caller owns the maps.
func (t *Source) States() map[string]map[string]any {
	if !t.live() {
		return nil
	}
	return t.home.states()
}

// describe takes in descriptors: a name that is known is replaced. It reports whether anything is other than before.
func (t *Source) describe(raw json.RawMessage) (changed bool) {
	parts, err := elements(raw)
	if err != nil {
		t.complain(fmt.Errorf("descriptors: %w", err))
		return false
	}
	for i, part := range parts {
		th, odd, err := parseThing(part)
		if err == nil {
			changed = !t.home.knows(th) || changed
			err = t.home.describe(th)
		}
		if err != nil {
			t.complain(fmt.Errorf("descriptor %d is left out: %w", i, err))
			continue
		}
		for _, o := range odd {
			t.complain(fmt.Errorf("descriptor of %s: %w", th.name, o))
		}
		t.log.Debug("thing described", "thing", th.name, "properties", len(th.properties), "methods", len(th.methods))
		t.mu.Lock()
		t.described = true
		t.mu.Unlock()
		if t.options.DeviceID != "" {
			t.options.Cache.homes.Put(t.options.DeviceID, t.home, t.home.weight())
		}
	}
	return changed
}

// take merges states and wakes the queries that wait for one. The first report
// of a connection comes after all descriptors: a thing that was not described
// by then, though others were, is not there any more. It reports whether anything is other than before.
func (t *Source) take(raw json.RawMessage) (changed bool) {
	parts, err := elements(raw)
	if err != nil {
		t.complain(fmt.Errorf("states: %w", err))
		return false
	}
	t.mu.Lock()
	settle := t.described && !t.reported
	t.reported = true
	t.mu.Unlock()
	if settle {
		if gone := t.home.dropStale(); len(gone) > 0 {
			t.log.Info("things are gone", "things", gone)
			changed = true
		}
	}
	for i, part := range parts {
		r, err := parseReport(part)
		if err == nil {
			err = t.home.merge(&r)
		}
		if err != nil {
			t.complain(fmt.Errorf("state %d: %w", i, err))
		}
		if r.known {
			changed = changed || len(r.changed) > 0
			t.wake(r)
		}
	}
	return changed
}

// complain logs what a device sent that could not be used: the first, the
// second, the fourth … so that a flood cannot flood the log.
func (t *Source) complain(err error) {
	if n := t.odd.Add(1); bits.OnesCount64(n) == 1 {
		t.log.Warn("iot message is not as it should be", "err", text.Shorten(err.Error(), 256), "count", n)
	}
}

// wake hands a report to the queries of its thing. A query takes one.
func (t *Source) wake(r report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.waiters {
		if w.concerns(r) {
			w.report <- r.changed
			delete(t.waiters, w)
		}
	}
	t.judge(r, time.Now())
}

// Start makes the tools available. The source ends with Stop, not with ctx.
func (t *Source) Start(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return fmt.Errorf("start things: %w", mcp.ErrClosed)
	}
	if t.options.Send == nil {
		return errors.New("start things: options have no Send")
	}
	t.started = true
	return nil
}

// Stop takes the tools away and fails the queries that wait, with ErrClosed.
// The cache keeps what is known. It may be called many times.
func (t *Source) Stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended = true
		close(t.closed)
	}
	return nil
}

// live reports whether the source is between Start and Stop.
func (t *Source) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.started && !t.ended
}

// HasTool reports whether some property or method has the tool's name.
func (t *Source) HasTool(name string) bool {
	if !t.live() {
		return false
	}
	_, ok := t.home.target(name)
	return ok
}

// GetAvailableTools lists the tools in the order in which the things were
// described first: of each its properties, then its methods, by name.
func (t *Source) GetAvailableTools() []mcp.Tool {
	if !t.live() {
		return nil
	}
	return t.home.list()
}

// IsReady reports whether at least one thing is known, be it from an earlier connection.
func (t *Source) IsReady() bool { return t.live() && t.home.size() > 0 }

// ResetConnection marks everything as stale. A device describes its things by
// itself, at the beginning of a connection, and cannot be asked for them: what
// is known stays until it is said again.
func (t *Source) ResetConnection() error {
	t.mu.Lock()
	ended := t.ended
	if !ended {
		t.described, t.reported = false, false
	}
	t.mu.Unlock()
	if ended {
		return fmt.Errorf("reset things: %w", mcp.ErrClosed)
	}
	t.home.markStale()
	return nil
}

// CallTool reads a property or calls a method. Errors: ErrNoTool, ErrClosed, a
// *ToolError for arguments that do not fit the descriptor (nothing is sent
// then), those of Send and, from a query, those of ctx.
func (t *Source) CallTool(ctx context.Context, name string, arguments map[string]any) (result any, err error) {
	defer func() {
		if err != nil {
			result, err = nil, fmt.Errorf("call %s: %w", name, err)
		}
	}()
	t.mu.Lock()
	started, ended := t.started, t.ended
	t.mu.Unlock()
	if ended {
		return nil, mcp.ErrClosed
	}
	to, ok := t.home.target(name)
	if !ok || !started {
		return nil, mcp.ErrNoTool
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if to.method == nil {
		return t.home.read(to, mcp.InfoFrom(ctx).Language), nil
	}
	commands, parameters, err := encodeCommand(to.thing, to.method, arguments)
	if err != nil {
		return nil, &mcp.ToolError{Message: err.Error()}
	}
	if to.kind == mcp.Control {
		return t.control(ctx, to, parameters, commands)
	}
	return t.await(ctx, to.thing, t.home.properties(to.thing, arguments), commands)
}

// control sends a command, and waits for its effect where nobody waits for that.
func (t *Source) control(ctx context.Context, to target, parameters map[string]any, commands json.RawMessage) (any, error) {
	var e *expected
	if to.change.known() && mcp.Assumed(ctx) {
		e = t.expect(to.thing, to.change.want(parameters)) // before the command, whose effect may come at once
	}
	if err := t.options.Send(commands); err != nil {
		return nil, fmt.Errorf("send command: %w", err)
	}
	mcp.Sent(ctx)
	if err := t.confirm(ctx, e); err != nil {
		return nil, err
	}
	return true, nil
}

// await sends a command and waits for the next report of the thing that may be its effect.
func (t *Source) await(ctx context.Context, thing string, sets []string, commands json.RawMessage) (any, error) {
	w := &waiter{thing: thing, sets: sets, report: make(chan map[string]any, 1)}
	t.mu.Lock()
	t.waiters[w] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waiters, w)
	}()
	if err := t.options.Send(commands); err != nil {
		return nil, fmt.Errorf("send command: %w", err)
	}
	select {
	case changed := <-w.report:
		result := map[string]any{"thing": thing, "changed": changed}
		if len(changed) == 0 {
			result["note"] = message.In(text.Lang(mcp.InfoFrom(ctx).Language), "iot/unchanged")
		}
		return result, nil
	case <-t.closed:
		return nil, mcp.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// elements are the members of an array; a single object stands for itself.
func elements(raw json.RawMessage) ([]json.RawMessage, error) {
	if err := rawjson.CheckSize(raw); err != nil {
		return nil, err
	}
	var one struct{}
	if json.Unmarshal(raw, &one) == nil {
		return []json.RawMessage{raw}, nil
	}
	var many []json.RawMessage
	if err := json.Unmarshal(raw, &many); err != nil {
		return nil, errors.New("neither an array nor an object")
	}
	return many, nil
}
