package external

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/secret"
)

// Options describe a Set. The zero value is one without servers.
type Options struct {
	Servers map[string]Config // of the config; they win over those of the file
	File    string            // a JSON file of more, read again when it changes; "" for none
	Poll    time.Duration     // between two looks at the file; 0 means 2 s
	Secrets secret.Sources    // that the file may refer to
	ServerOptions
}

// Set owns all external servers, those that the config and the file name and
// those that dial in. It is an mcp.Group: a router sees each of its servers.
// All methods may be called at the same time.
type Set struct {
	options Options
	log     *slog.Logger
	life    life   // of the watcher of the file; its wg counts each peer too
	follow  func() // told of each change; nil: nobody is

	mu      sync.Mutex
	servers map[string]*Server
	peers   map[string]*peer  // by the name they were given
	leftOut []Status          // whose entries cannot be used
	ours    map[string]Config // of the settings, that win over those of the file
	other   chan struct{}     // room for one: ours are others now
}

var _ mcp.Group = (*Set)(nil)

// NewSet makes a set. It does nothing before Start.
func NewSet(o Options) *Set {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Poll <= 0 {
		o.Poll = 2 * time.Second
	}
	set := &Set{
		options: o, log: o.Log, servers: make(map[string]*Server), peers: make(map[string]*peer), ours: o.Servers, other: make(chan struct{}, 1),
	}
	set.options.changed = set.changed
	return set
}

// SetServers puts other servers in the place of those of the options: new ones begin, those that changed begin anew, and
// those that are not among them end. It does not wait for any of that.
func (set *Set) SetServers(servers map[string]Config) {
	set.mu.Lock()
	same := reflect.DeepEqual(servers, set.ours)
	set.ours = servers
	set.mu.Unlock()
	if same {
		return
	}
	select {
	case set.other <- struct{}{}:
	default: // they will be looked at anyway
	}
}

// Start starts all servers and the watch over the file, and returns at once. The
// set ends with ctx or with Stop. A second Start does nothing.
func (set *Set) Start(ctx context.Context) error {
	return set.life.start(ctx, "start mcp servers", set.watch)
}

// Stop ends all servers and peers, all at the same time, and waits for them. It
// may be called many times.
func (set *Set) Stop() error {
	set.end()
	set.life.wg.Wait()
	return nil
}

// end ends everything but the watch, which sees it by its context.
func (set *Set) end() {
	set.life.end()
	var wg sync.WaitGroup
	for _, s := range set.list(nil) {
		wg.Go(func() { _ = s.Stop() })
	}
	wg.Wait()
}

// list returns the servers, then the peers, each by name: all, or those for
// devices that fit.
func (set *Set) list(fits func(device string) bool) []*Server {
	set.mu.Lock()
	defer set.mu.Unlock()
	var out []*Server
	for _, name := range slices.Sorted(maps.Keys(set.servers)) {
		out = append(out, set.servers[name])
	}
	for _, name := range slices.Sorted(maps.Keys(set.peers)) {
		if p := set.peers[name]; fits == nil || fits(p.device) {
			out = append(out, p.Server)
		}
	}
	return out
}

// apply makes configs the servers there are: those that are not among them end,
// others begin, those that changed do both. keep names servers whose config
// could not be read: they stay as they are. It waits for the end of the old
// ones, so that a new one does not meet them at a port or a file.
func (set *Set) apply(ctx context.Context, configs map[string]Config, keep map[string]error) {
	var wg sync.WaitGroup
	set.mu.Lock()
	for name, old := range set.servers {
		if _, broken := keep[name]; broken {
			continue
		}
		c, stays := configs[name]
		if stays && reflect.DeepEqual(c, old.config) {
			continue
		}
		delete(set.servers, name)
		wg.Go(func() { _ = old.Stop() })
	}
	set.mu.Unlock()
	wg.Wait()
	set.mu.Lock()
	defer set.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if set.over() || set.servers[name] != nil {
			continue
		}
		s := NewServer(name, configs[name], set.options.ServerOptions)
		set.servers[name] = s
		set.log.Info("mcp server", "server", name, "config", configs[name])
		_ = s.Start(ctx) // it is new, so it starts
	}
}

// Sources are the servers by name, then the peers that are for all devices.
func (set *Set) Sources() []mcp.Source { return set.For("").Sources() }

// For is the set as one device has it: with the peers that are for it alone.
// Its Start and Stop do nothing.
func (set *Set) For(device string) mcp.Group { return &view{set: set, device: strings.ToLower(device)} }

// HasTool reports whether any server has the tool.
func (set *Set) HasTool(name string) bool { return set.For("").HasTool(name) }

// GetAvailableTools lists the tools of all servers, in the order of Sources.
func (set *Set) GetAvailableTools() []mcp.Tool { return set.For("").GetAvailableTools() }

// CallTool runs a tool of the first server that has it.
func (set *Set) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	if set.over() {
		return nil, fmt.Errorf("call %s: %w", name, mcp.ErrClosed)
	}
	return set.For("").CallTool(ctx, name, arguments)
}

// IsReady reports whether the set runs. Its servers come and go.
func (set *Set) IsReady() bool {
	started, ended := set.life.state()
	return started && !ended
}

// ResetConnection resets every server.
func (set *Set) ResetConnection() error {
	if set.over() {
		return fmt.Errorf("reset mcp servers: %w", mcp.ErrClosed)
	}
	for _, s := range set.list(nil) {
		_ = s.ResetConnection() // but for one that has just left
	}
	return nil
}

func (set *Set) over() bool {
	_, ended := set.life.state()
	return ended
}

// view is a set as one device has it.
type view struct {
	set    *Set
	device string
}

func (v *view) Start(context.Context) error { return nil }
func (v *view) Stop() error                 { return nil }
func (v *view) IsReady() bool               { return v.set.IsReady() }
func (v *view) ResetConnection() error      { return v.set.ResetConnection() }

func (v *view) Sources() []mcp.Source {
	var out []mcp.Source
	for _, s := range v.set.list(func(device string) bool { return device == "" || device == v.device }) {
		out = append(out, s)
	}
	return out
}

func (v *view) HasTool(name string) bool {
	return slices.ContainsFunc(v.Sources(), func(s mcp.Source) bool { return s.HasTool(name) })
}

func (v *view) GetAvailableTools() []mcp.Tool {
	var out []mcp.Tool
	for _, s := range v.Sources() {
		out = append(out, s.GetAvailableTools()...)
	}
	return out
}

func (v *view) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	for _, s := range v.Sources() {
		if s.HasTool(name) {
			return s.CallTool(ctx, name, arguments)
		}
	}
	return nil, fmt.Errorf("call %s: %w", name, mcp.ErrNoTool)
}
