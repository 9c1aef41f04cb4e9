// Package gateway serves what others may use of this server: its tools, its devices
// and what is known of them, by the Model Context Protocol over HTTP, SSE and
// WebSocket, and by plain HTTP.
//
//	request ─▶ Access ─▶ Gateway ─▶ catalog.View ─▶ catalog.Runner ─▶ tool
//
// Access control finds the caller of a request. The package catalog holds what is
// offered and shows each caller its part; the package offer fills it. The protocol
// is the official SDK's (imported as sdk); REST, SSE and the WebSocket are our own.
package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/router"
)

// Options are the settings of a [Gateway]. Access is needed; the zero value of the
// rest offers the core tools only.
type Options struct {
	Disabled bool                                                                  // nothing is offered: everything is answered with 503
	Access   Access                                                                // access control
	Version  string                                                                // of this server; "": dev
	Audit    func(ctx context.Context, who catalog.Caller, tool string, done bool) // keeps what programs do for people; nil: nobody does
	Count    func(rec router.Record)                                               // gets the record of each call that no router has one of; nil: nobody does
	Gate     router.Gate                                                           // asked about each call, and about what is offered
	Times    router.Times                                                          // limits of calls that the settings set
	Offer    offer.Options                                                         // what is offered beside the core tools. The gateway sets what it has itself

	Zone func() *time.Location // of the times that are told; nil: UTC
	Log  *slog.Logger          // nil: slog.DiscardHandler
}

// Gateway serves what is offered outward. It is an [http.Handler] for all paths
// that [Serves] names. All methods may be called at the same time.
type Gateway struct {
	*front
	disabled bool
	registry *catalog.Registry
	offers   offer.Options
	follower *offer.Follower
	version  string
	began    time.Time

	mu     sync.Mutex
	cancel context.CancelFunc // nil before Start
	wg     sync.WaitGroup
}

// front describes what all ways in use: access control, the views, the runner of tools,
// and the sessions that are open.
type front struct {
	guard    *guard
	views    *catalog.Views
	runner   *catalog.Runner
	sessions *sessions
	bodyTime time.Duration // for the body of a request to come
	log      *slog.Logger
}

// New makes a gateway, which serves at once. Start has it follow what changes.
func New(o Options) *Gateway {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Zone == nil {
		o.Zone = func() *time.Location { return time.UTC }
	}
	o.Version = cmp.Or(o.Version, "dev")
	registry, runner := catalog.NewRegistry(o.Gate), catalog.NewRunner(o.Gate, o.Zone, o.Log)
	runner.Audit, runner.Count = o.Audit, o.Count
	runner.SetTimes(o.Times)
	views := catalog.NewViews(registry, runner, o.Version, o.Log)
	g := &Gateway{
		front: &front{
			guard: newGuard(o.Access, o.Log), views: views, runner: runner,
			sessions: newSessions(), bodyTime: bodyTime, log: o.Log,
		},
		disabled: o.Disabled, registry: registry, version: o.Version, began: time.Now(),
	}
	o.Offer.Log, o.Offer.Zone, o.Offer.Version, o.Offer.Began, o.Offer.Tools = o.Log, o.Zone, o.Version, g.began, views.Tools
	offer.Fill(registry, o.Offer)
	g.offers = o.Offer
	g.follower = offer.NewFollower(registry, o.Offer, views.Updated)
	return g
}

// Renew has another gate asked and other limits kept from now on, and offers the server's own tools as they are now.
func (g *Gateway) Renew(gate router.Gate, times router.Times) {
	g.front.runner.SetGate(gate)
	g.front.runner.SetTimes(times)
	g.registry.SetGate(gate)
	offer.Renew(g.registry, g.offers)
}

// SetOwner makes token that of the owner, who may do everything; "" is none. It must be
// called before anything is served.
func (g *Gateway) SetOwner(token string) { g.guard.owner = token }

// Start follows devices, other servers and the folder of tools until ctx ends or
// Close. A second Start does nothing.
func (g *Gateway) Start(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cancel != nil {
		return
	}
	ctx, g.cancel = context.WithCancel(ctx)
	g.wg.Go(func() { g.follower.Run(ctx) })
	g.wg.Go(func() { g.sweep(ctx) })
}

// sweep ends unused sessions and views until ctx ends.
func (g *Gateway) sweep(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			g.sessions.sweep()
			g.endRevoked(ctx)
			g.views.Sweep()
		}
	}
}

// endRevoked ends what tokens of accounts have open, and their calls, that may not do any more what they could when it
// began. It may wait for a disk.
func (g *Gateway) endRevoked(ctx context.Context) {
	seen := map[*catalog.Account]bool{}
	for _, c := range append(g.sessions.callers(), g.runner.Running()...) {
		if of := c.Token.Account; !seen[of] {
			seen[of] = true
			if !c.Lasts(ctx) {
				g.sessions.endOf(of)
				g.runner.EndOf(of)
			}
		}
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
	g.wg.Wait()
	g.runner.Close()
	g.sessions.closeAll()
	g.views.Close()
	g.sessions.wg.Wait()
}

// Registry returns the registry, where tools are registered at run time.
func (g *Gateway) Registry() *catalog.Registry { return g.registry }

// DeviceChanged notes that a device came, left, or has other tools or states now.
// It never waits.
func (g *Gateway) DeviceChanged(id string) { g.follower.DeviceChanged(id) }

// TranscriptChanged notes that something was said with a device. It never waits.
func (g *Gateway) TranscriptChanged(id string) { g.follower.TranscriptChanged(id) }

// Updated tells clients that subscribed to them that resources have changed.
func (g *Gateway) Updated(ctx context.Context, uris ...string) { g.views.Updated(ctx, uris...) }
