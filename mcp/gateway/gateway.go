package gateway

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// Options are what a Gateway offers. Access is needed; the zero value of the
// rest offers the core tools only.
type Options struct {
	Disabled bool      // nothing is offered: everything is answered with 503
	Access   Access    //
	Registry *Registry // what is registered by hand; nil: a new one
	Version  string    // ours, for serverInfo

	Devices Devices           // nil: none
	Acts    Acts              // what can be done to a device's conversation from outside
	Local   mcp.Source        // this server's own tools; nil: not offered
	Shared  func() []mcp.Tool // tools of other people's servers that are passed on, their Stream set; nil: none
	// CallShared runs one of them, by the name of its source.
	CallShared func(ctx context.Context, source, name string, arguments map[string]any) (any, error)

	// States are the states of a device's things; nil: not offered.
	States func(id string) (map[string]map[string]any, bool)
	// Transcript is what was said with a device in this session, the oldest
	// first; nil: not offered.
	Transcript func(id string) ([]Line, bool)

	Prompts   *prompts.Set  // nil: none
	Assistant string        // the assistant's name, for prompts
	Config    func() []byte // the settings without secrets, as JSON; nil: not offered
	LogTail   func() string // the last lines of the log; nil: not offered
	ToolsDir  string        // folder of declarative tools (*.yaml), read again when it changes; "": none

	Zone *time.Location // nil: UTC
	Log  *slog.Logger   // nil: slog.DiscardHandler
}

// Line is one thing that was said.
type Line struct {
	Time time.Time `json:"time"`
	Role string    `json:"role"` // user or assistant
	Text string    `json:"text"`
}

// Gateway serves what is offered outward. It is an http.Handler for all paths
// that Serves names. All methods may be called at the same time.
type Gateway struct {
	options  Options
	log      *slog.Logger
	guard    *guard
	registry *Registry
	views    views
	sessions sessions
	slots    slots
	calls    atomic.Uint64
	began    time.Time
	bodyTime time.Duration // for the body of a request to come

	rouse  sync.Once     // takes the devices in when somebody asks for the first time
	taking sync.Mutex    // held while devices are taken in: the newest word is the last
	wake   chan struct{} // 1: devices have changed
	mu     sync.Mutex
	awake  bool                // somebody has asked: what devices offer is followed
	dirty  map[string]struct{} // devices that have changed, by id
	spoken map[string]struct{} // devices with which something was said, by id
	warned map[string]struct{} // tools that cannot be offered, and why
	cancel context.CancelFunc  // nil before Start
	wg     sync.WaitGroup
}

// New makes a gateway, which serves at once. Start has it follow what changes.
func New(o Options) *Gateway {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = NewRegistry()
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	g := &Gateway{
		options: o, log: o.Log, registry: o.Registry, began: time.Now(), bodyTime: bodyTime,
		wake: make(chan struct{}, 1), dirty: map[string]struct{}{}, spoken: map[string]struct{}{}, warned: map[string]struct{}{},
	}
	o.Access.Log = o.Log
	g.guard = o.Access.guard(g.refused)
	g.views.init(g)
	g.registry.set(partCore, g.core())
	if o.Local != nil {
		g.registry.set(partLocal, g.localPart())
	}
	g.refreshShared()
	g.registry.watch(g.views.apply)
	return g
}

// asked takes in what devices offer, the first time that somebody asks for
// anything. A server whose tools nobody uses keeps none of them: with forty tools
// each, they would be half of what a device costs.
func (g *Gateway) asked() {
	g.rouse.Do(func() {
		g.mu.Lock()
		g.awake = true // from here on changes are followed: none is missed
		g.mu.Unlock()
		g.takeDevices(g.deviceIDs())
	})
}

// deviceIDs are the devices that are connected.
func (g *Gateway) deviceIDs() []string {
	if g.options.Devices == nil {
		return nil
	}
	var ids []string
	for _, d := range g.options.Devices.List() {
		ids = append(ids, d.ID)
	}
	return ids
}

// Start follows devices, other people's servers and the folder of tools until
// ctx ends or Close. A second Start does nothing.
func (g *Gateway) Start(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cancel != nil {
		return
	}
	ctx, g.cancel = context.WithCancel(ctx)
	g.wg.Go(func() { g.follow(ctx) })
	if g.options.ToolsDir != "" {
		g.wg.Go(func() { g.followFolder(ctx) })
	}
}

// Close ends all calls, sessions, streams and sockets and waits for them.
func (g *Gateway) Close() {
	g.mu.Lock()
	if g.cancel != nil {
		g.cancel()
	} else {
		g.cancel = func() {} // Start does nothing any more
	}
	g.mu.Unlock()
	g.slots.closeAll()
	g.sessions.closeAll()
	g.views.close()
	g.sessions.wg.Wait()
	g.wg.Wait()
}

// Registry is where tools are registered at run time.
func (g *Gateway) Registry() *Registry { return g.registry }

// DeviceChanged says that a device came, left, or has other tools or states now.
// It never waits.
func (g *Gateway) DeviceChanged(id string) { g.note(g.dirty, id) }

// TranscriptChanged says that something was said with a device. It never waits.
func (g *Gateway) TranscriptChanged(id string) { g.note(g.spoken, id) }

// note notes a device in one of the sets that mu guards.
func (g *Gateway) note(set map[string]struct{}, id string) {
	g.mu.Lock()
	set[id] = struct{}{}
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// follow takes in changes until ctx ends: those of devices once they have been
// quiet for a moment, so that one coming makes one change.
func (g *Gateway) follow(ctx context.Context) {
	poll := time.NewTicker(externalPoll)
	defer poll.Stop()
	settle := time.NewTimer(time.Hour)
	settle.Stop()
	defer settle.Stop()
	var first time.Time // of the changes that are waiting
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
			if first.IsZero() {
				first = time.Now()
			}
			settle.Reset(max(0, min(settleTime, time.Until(first.Add(settleLimit)))))
		case <-settle.C:
			first = time.Time{}
			g.refreshDirty(ctx)
		case <-poll.C:
			g.refreshShared()
			g.sessions.sweep()
			g.views.sweep()
		}
	}
}

// refreshDirty takes in the devices that have changed.
func (g *Gateway) refreshDirty(ctx context.Context) {
	g.mu.Lock()
	dirty, spoken := maps.Clone(g.dirty), maps.Clone(g.spoken)
	clear(g.dirty)
	clear(g.spoken)
	awake := g.awake
	g.mu.Unlock()
	if !awake {
		return
	}
	var uris []string
	if len(dirty) > 0 {
		g.takeDevices(slices.Collect(maps.Keys(dirty)))
		uris = append(uris, uriDevices)
	}
	for id := range dirty {
		uris = append(uris, deviceURIs(id)...)
	}
	for id := range spoken {
		uris = append(uris, deviceURI(id, partTranscript))
	}
	g.Updated(ctx, uris...)
}

// refused answers a request that Access does not let in.
func (g *Gateway) refused(w http.ResponseWriter, r *http.Request, d *denial) {
	g.problem(w, r, d.status, d.code, say(languageOf(r), d.zh, d.en))
}

// warnOnce logs what is wrong with a tool the first time it is met.
func (g *Gateway) warnOnce(message, tool string, err error) {
	key := tool + "\x00" + err.Error()
	g.mu.Lock()
	_, known := g.warned[key]
	if len(g.warned) >= maxWarned {
		clear(g.warned)
	}
	g.warned[key] = struct{}{}
	g.mu.Unlock()
	if !known {
		g.log.Warn(message, "tool", tool, "err", err)
	}
}

// maxWarned bounds what is remembered of warnings.
const maxWarned = 512
