// Package home offers the things of a Home Assistant as tools: its areas and entities are read by its REST interface
// (https://developers.home-assistant.io/docs/api/rest), and are worked by name and area.
package home

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local/web"
)

// Options configure a [Home].
type Options struct {
	Client  *web.Client   // of the server's address, with its token
	Show    []string      // patterns of entity ids; empty: all
	Hide    []string      // patterns of entity ids
	Doors   bool          // garage doors, doors and gates can be opened, after a yes
	Refresh time.Duration // how often areas and entities are read; 0: 5 minutes
	Log     *slog.Logger  // nil: discarded
}

const (
	usualRefresh = 5 * time.Minute
	firstRetry   = 5 * time.Second // after a failed reading, then twice as long
)

// Home is a Home Assistant as a source of tools. Its things are read in the background, so that they are known before somebody
// asks. All methods may be called at the same time.
type Home struct {
	o Options

	mu      sync.Mutex
	started bool
	ended   bool
	things  *inventory // nil: not read yet
	tools   []mcp.Tool // of things
	calls   map[uint64]context.CancelCauseFunc
	number  uint64 // of the last call

	stop context.CancelFunc
	anew chan struct{} // holds one when the things are to be read now
	done sync.WaitGroup
}

var _ mcp.Source = (*Home)(nil)

// New makes a source that is not started.
func New(o Options) *Home {
	if o.Refresh <= 0 {
		o.Refresh = usualRefresh
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Home{o: o, calls: map[uint64]context.CancelCauseFunc{}, anew: make(chan struct{}, 1)}
}

// Start begins to read what there is. It does not wait for it.
func (h *Home) Start(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return fmt.Errorf("start home: %w", mcp.ErrClosed)
	}
	if h.started {
		return nil
	}
	h.started = true
	ctx, h.stop = context.WithCancel(ctx)
	h.done.Go(func() { h.follow(ctx) })
	return nil
}

// Stop ends the reading, and the calls that are running.
func (h *Home) Stop() error {
	h.mu.Lock()
	first := !h.ended
	h.ended, h.things, h.tools = true, nil, nil
	for _, cancel := range h.calls {
		cancel(mcp.ErrClosed)
	}
	if first && h.stop != nil {
		h.stop()
	}
	h.mu.Unlock()
	h.done.Wait()
	h.o.Client.Close()
	return nil
}

// follow reads the things again and again.
func (h *Home) follow(ctx context.Context) {
	wait := firstRetry
	for {
		things, err := read(ctx, h.o)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			h.o.Log.Warn("the things at home cannot be read", "err", err)
			wait = min(2*wait, h.o.Refresh)
		default:
			wait = h.o.Refresh
			h.take(things)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-h.anew:
			wait = firstRetry
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// take has the things be these.
func (h *Home) take(things *inventory) {
	tools := things.tools(h.o.Doors)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	if h.things == nil || len(h.things.entities) != len(things.entities) {
		h.o.Log.Info("the things at home are known", "entities", len(things.entities), "areas", len(things.areas), "left_out", things.leftOut)
	}
	h.things, h.tools = things, tools
}

// HasTool reports whether the tool is there.
func (h *Home) HasTool(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.tools, func(t mcp.Tool) bool { return t.Name == name })
}

// GetAvailableTools lists the tools for the things that there are.
func (h *Home) GetAvailableTools() []mcp.Tool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.tools)
}

// IsReady reports whether the things have been read.
func (h *Home) IsReady() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.things != nil
}

// ResetConnection reads the things anew.
func (h *Home) ResetConnection() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return fmt.Errorf("read home: %w", mcp.ErrClosed)
	}
	select {
	case h.anew <- struct{}{}:
	default: // they will be
	}
	return nil
}

// CallTool works the things. The result is an [mcp.ActionResponse].
func (h *Home) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	things, number, err := h.begin(name, cancel)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	defer h.finish(number)
	response := h.act(ctx, things, name, arguments)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("call %s: %w", name, context.Cause(ctx))
	}
	return response, nil
}

// begin notes a call, so that Stop can end it.
func (h *Home) begin(name string, cancel context.CancelCauseFunc) (*inventory, uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
		return nil, 0, mcp.ErrClosed
	case !slices.ContainsFunc(h.tools, func(t mcp.Tool) bool { return t.Name == name }):
		return nil, 0, mcp.ErrNoTool
	}
	h.number++
	h.calls[h.number] = cancel
	return h.things, h.number, nil
}

func (h *Home) finish(number uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.calls, number)
}

// Errors of what Home Assistant answers.
var (
	ErrToken   = errors.New("home assistant does not take the token")
	ErrRefused = errors.New("home assistant refuses that")
)

// explain says what a refusal means.
func explain(err error) error {
	status, refused := errors.AsType[web.StatusError](err)
	switch {
	case !refused:
		return err
	case status == 401, status == 403:
		return ErrToken
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}
