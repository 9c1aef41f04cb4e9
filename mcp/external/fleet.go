package external

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/mcp"
)

// Options describe a Fleet. The zero value is one without servers.
type Options struct {
	Servers map[string]Config // of the config; they win over those of the file
	File    string            // a JSON file of more, read again when it changes; "" for none
	Poll    time.Duration     // between two looks at the file; 0 means 2 s
	// Lookup gives the variables that the file may name; nil: none is set.
	Lookup func(name string) (string, bool)
	ServerOptions
}

// Fleet owns all external servers, those that the config and the file name and
// those that dial in. It is an mcp.Group: a toolbox sees each of its servers.
// All methods may be called at the same time.
type Fleet struct {
	options Options
	log     *slog.Logger
	wg      sync.WaitGroup // the watcher of the file, and one for each peer

	mu      sync.Mutex
	cancel  context.CancelFunc // nil before Start
	ended   bool
	servers map[string]*member
	peers   map[string]*peer // by the name they were given
}

// member is a server and what it was made of.
type member struct {
	*Server
	config Config
}

var _ mcp.Group = (*Fleet)(nil)

// NewFleet makes a fleet. It does nothing before Start.
func NewFleet(o Options) *Fleet {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Poll <= 0 {
		o.Poll = 2 * time.Second
	}
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	return &Fleet{options: o, log: o.Log, servers: make(map[string]*member), peers: make(map[string]*peer)}
}

// Start starts all servers and the watch over the file, and returns at once. The
// fleet ends with ctx or with Stop. A second Start does nothing.
func (f *Fleet) Start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return fmt.Errorf("start mcp servers: %w", mcp.ErrClosed)
	}
	if f.cancel != nil {
		return nil
	}
	ctx, f.cancel = context.WithCancel(ctx)
	f.wg.Go(func() { f.watch(ctx) })
	return nil
}

// Stop ends all servers and peers, all at the same time, and waits for them. It
// may be called many times.
func (f *Fleet) Stop() error {
	f.end()
	f.wg.Wait()
	return nil
}

// end ends everything but the watch, which sees it by its context.
func (f *Fleet) end() {
	f.mu.Lock()
	f.ended = true
	if f.cancel != nil {
		f.cancel()
	}
	f.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range f.all() {
		wg.Go(func() { _ = s.Stop() })
	}
	wg.Wait()
}

// all are all servers and peers, whoever they are for.
func (f *Fleet) all() []*Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*Server
	for _, name := range slices.Sorted(maps.Keys(f.servers)) {
		out = append(out, f.servers[name].Server)
	}
	for _, name := range slices.Sorted(maps.Keys(f.peers)) {
		out = append(out, f.peers[name].Server)
	}
	return out
}

// apply makes configs the servers there are: those that are not among them end,
// others begin, those that changed do both. keep names servers whose config
// could not be read: they stay as they are. It waits for the end of the old
// ones, so that a new one does not meet them at a port or a file.
func (f *Fleet) apply(ctx context.Context, configs map[string]Config, keep map[string]error) {
	var wg sync.WaitGroup
	f.mu.Lock()
	for name, old := range f.servers {
		if _, broken := keep[name]; broken {
			continue
		}
		if c, stays := configs[name]; stays && reflect.DeepEqual(c, old.config) {
			continue
		}
		delete(f.servers, name)
		wg.Go(func() { _ = old.Stop() })
	}
	f.mu.Unlock()
	wg.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if f.ended || f.servers[name] != nil {
			continue
		}
		m := &member{Server: NewServer(name, configs[name], f.options.ServerOptions), config: configs[name]}
		f.servers[name] = m
		f.log.Info("mcp server", "server", name, "config", configs[name])
		_ = m.Start(ctx) // it is new, so it starts
	}
}

// Sources are the servers by name, then the peers that are for all devices.
func (f *Fleet) Sources() []mcp.Source { return f.sources("") }

// For is the fleet as one device has it: with the peers that are for it alone.
// Its Start and Stop do nothing.
func (f *Fleet) For(device string) mcp.Group { return &view{fleet: f, device: strings.ToLower(device)} }

func (f *Fleet) sources(device string) []mcp.Source {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []mcp.Source
	for _, name := range slices.Sorted(maps.Keys(f.servers)) {
		out = append(out, f.servers[name].Server)
	}
	for _, name := range slices.Sorted(maps.Keys(f.peers)) {
		if p := f.peers[name]; p.device == "" || p.device == device {
			out = append(out, p.Server)
		}
	}
	return out
}

// HasTool reports whether any server has the tool.
func (f *Fleet) HasTool(name string) bool { return hasTool(f.Sources(), name) }

// GetAvailableTools lists the tools of all servers, in the order of Sources.
func (f *Fleet) GetAvailableTools() []mcp.Tool { return toolsOf(f.Sources()) }

// CallTool runs a tool of the first server that has it.
func (f *Fleet) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	if f.over() {
		return nil, fmt.Errorf("call %s: %w", name, mcp.ErrClosed)
	}
	return callFirst(ctx, f.Sources(), name, arguments)
}

// IsReady reports whether the fleet runs. Its servers come and go.
func (f *Fleet) IsReady() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancel != nil && !f.ended
}

// ResetConnection resets every server.
func (f *Fleet) ResetConnection() error {
	if f.over() {
		return fmt.Errorf("reset mcp servers: %w", mcp.ErrClosed)
	}
	var errs []error
	for _, s := range f.all() {
		if err := s.ResetConnection(); err != nil && !errors.Is(err, mcp.ErrClosed) { // it has just left
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (f *Fleet) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// view is a fleet as one device has it.
type view struct {
	fleet  *Fleet
	device string
}

func (v *view) Start(context.Context) error   { return nil }
func (v *view) Stop() error                   { return nil }
func (v *view) IsReady() bool                 { return v.fleet.IsReady() }
func (v *view) ResetConnection() error        { return v.fleet.ResetConnection() }
func (v *view) Sources() []mcp.Source         { return v.fleet.sources(v.device) }
func (v *view) HasTool(name string) bool      { return hasTool(v.Sources(), name) }
func (v *view) GetAvailableTools() []mcp.Tool { return toolsOf(v.Sources()) }
func (v *view) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	return callFirst(ctx, v.Sources(), name, arguments)
}

func hasTool(sources []mcp.Source, name string) bool {
	return slices.ContainsFunc(sources, func(s mcp.Source) bool { return s.HasTool(name) })
}

func toolsOf(sources []mcp.Source) []mcp.Tool {
	var out []mcp.Tool
	for _, s := range sources {
		out = append(out, s.GetAvailableTools()...)
	}
	return out
}

func callFirst(ctx context.Context, sources []mcp.Source, name string, arguments map[string]any) (any, error) {
	for _, s := range sources {
		if s.HasTool(name) {
			return s.CallTool(ctx, name, arguments)
		}
	}
	return nil, fmt.Errorf("call %s: %w", name, mcp.ErrNoTool)
}
