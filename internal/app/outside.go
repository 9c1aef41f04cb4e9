package app

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/connection/identity"
	"xiaozhi/console/api"
	"xiaozhi/internal/access"
	"xiaozhi/internal/config"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/outward"
	"xiaozhi/internal/quiet"
	"xiaozhi/internal/routine"
	"xiaozhi/internal/sender"
	"xiaozhi/internal/toolcount"
	"xiaozhi/internal/version"
	"xiaozhi/knowledge"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/external/library"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/router"
	"xiaozhi/memory"
	"xiaozhi/prompts"
	"xiaozhi/voices"
)

// outside is all that others than its user can do with a device, and what is kept of that.
type outside struct {
	outward.Devices // for the gateway

	devices *directory.Devices
	calls   *router.Journal       // of all devices, connected or not
	counts  *toolcount.Tally      // of all calls
	quiet   *quiet.Mode           // whether devices say what nobody has asked for; set before devices connect
	known   *memory.Book          // what is remembered of people; nil: nothing is
	voices  *voices.Book          // the people who are known by their voices; nil: nobody is
	library *knowledge.Library    // of the documents of agents; set before devices connect
	letters *mail.Office          // what devices are to be told, connected or not; set before devices connect
	sender  *sender.Sender        // by which several devices are told something; set before devices connect
	here    func() *router.Router // makes a router of the tools that need no device; set before devices connect

	routines *routine.Book // what is done at times and after events; set before devices connect
}

// newOutside returns one of devices that have no names, are never quiet, and can be told nothing unless they are connected.
func newOutside() outside {
	o := outside{
		quiet:   quiet.New(quiet.Options{Log: slog.New(slog.DiscardHandler)}),
		devices: directory.New(), calls: router.NewJournal(), counts: toolcount.New(),
	}
	o.Devices = outward.New(outward.Options{Directory: o.devices, Journal: o.calls})
	return o
}

// outward makes what is offered to others: the gateway over the devices, our own
// tools, and those of other people's servers that are passed on.
func (a *App) outward(own mcp.Source, fleet *external.Set, set *prompts.Set, files *offer.Files) {
	cfg, who := a.cfg, gatewayAccess(a.cfg)
	who.Account = programs(a.accounts)
	o := gateway.Options{
		Disabled: !cfg.MCP.Enabled, Access: who, Audit: callsOf(a.accounts), Count: a.outside.counts.Note, Gate: gateOf(cfg), Times: cfg.Tools.Timeouts, Version: version.Number(), Log: a.log, Zone: a.forces.zone.Location,
		Offer: offer.Options{Assistant: func() string { return a.base().Agent.Name }, Files: files},
	}
	if cfg.MCP.AutoRegister {
		o.Offer.Devices, o.Offer.Local, o.Offer.Prompts = a.outside, own, set
		o.Offer.Acts, o.Offer.States = a.outside.Acts(), a.outside.States
		o.Offer.Config = func() []byte { return a.base().Redacted() }
		o.Offer.LogTail = a.seen.tail.Text
		if cfg.MCP.Transcripts {
			o.Offer.Transcript = a.outside.Transcript
		}
		if len(cfg.MCP.PassOn) > 0 {
			shared := sharedTools{fleet, cfg.MCP.PassOn}
			o.Offer.Shared, o.Offer.CallShared = shared.list, shared.call
			o.Offer.Shares = func() []library.Share {
				return fleet.Shares(func(t mcp.Tool) bool { return mcp.FitsServer(cfg.MCP.PassOn, t) })
			}
		}
	}
	a.gateway = gateway.New(o)
	a.outside.devices.Watch(a.gateway)
	a.life.atEnd(a.gateway.Close)
}

// ownAddresses are those that mcp.listen and mcp.port add to server.listen.
func ownAddresses(cfg *config.Config) []string {
	own := slices.Concat(cfg.MCP.Listen, consoleAddresses(cfg))
	for _, address := range cfg.Server.Listen {
		if host, _, err := net.SplitHostPort(address); err == nil && cfg.MCP.Port != 0 {
			own = append(own, net.JoinHostPort(host, strconv.Itoa(cfg.MCP.Port)))
		}
	}
	slices.Sort(own)
	return slices.DeleteFunc(slices.Compact(own), func(a string) bool { return slices.Contains(cfg.Server.Listen, a) })
}

// consoleAddresses are those at which people ask that no listener of devices or of HTTPS gets.
func consoleAddresses(cfg *config.Config) (own []string) {
	for _, address := range cfg.Console.Listen {
		host, port, _ := net.SplitHostPort(address) // the config has checked it
		at, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(cmp.Or(host, "0.0.0.0"), port))
		covered := func(listen string) bool { return listen == address || err == nil && access.Covers(listen, at) }
		if !slices.ContainsFunc(append(slices.Clone(cfg.Server.Listen), cfg.Server.TLS.Listen), covered) {
			own = append(own, address)
		}
	}
	return own
}

// sharedTools are the tools of other people's servers that are passed on. The gateway
// asks the gate about them.
type sharedTools struct {
	fleet  mcp.Group
	passOn []string // patterns, as [mcp.FitsServer] reads them
}

func (s sharedTools) list() []mcp.Tool {
	var out []mcp.Tool
	for _, t := range s.fleet.GetAvailableTools() {
		if mcp.FitsServer(s.passOn, t) {
			out = append(out, t)
		}
	}
	return out
}

// call runs one of them, unless another one has taken its name since the gate was asked.
func (s sharedTools) call(ctx context.Context, t mcp.Tool, arguments map[string]any) (any, error) {
	for _, server := range s.fleet.Sources() {
		for _, now := range server.GetAvailableTools() {
			if now.Source == t.Source && now.Name == t.Name && now.Trusted == t.Trusted && reflect.DeepEqual(now.Annotations, t.Annotations) {
				return server.CallTool(ctx, t.Name, arguments)
			}
		}
	}
	return nil, mcp.ErrNoTool
}

func gatewayAccess(c *config.Config) gateway.Access {
	a := gateway.Access{Hosts: slices.Clone(c.MCP.Hosts), Origins: c.MCP.Origins}
	if u, err := url.Parse(c.Server.PublicURL); err == nil && u.Host != "" {
		a.Hosts = append(a.Hosts, u.Hostname())
	}
	for _, t := range c.MCP.Tokens {
		a.Tokens = append(a.Tokens, catalog.Token{Name: t.Name, Token: string(t.Token), ReadOnly: t.ReadOnly, Streams: t.Streams, Rate: t.Rate})
	}
	return a
}

// forPrograms are the routes by which programs see devices and services, and have devices say something.
func forPrograms(a *App, owner func(ctx context.Context, id string) (string, error)) []access.Route {
	now := condition{a}
	routes := api.Routes(api.Options{
		Guard: a.web.guard, Fleet: a.seen.fleet, Letters: a.outside.letters, Sender: a.outside.sender, Routines: a.outside.routines, ID: identity.ParseID, Owner: owner,
		Find: func(id string) (remote.Device, error) { return a.outside.devices.Find(id) },
		Chains: func(_ context.Context, whole bool) (any, error) {
			all := now.chains()
			for _, c := range all.Chains {
				for i := range c.Members {
					if !whole { // what services say may name accounts and addresses
						c.Members[i].Fault, c.Members[i].About = "", ""
					}
				}
			}
			return all, nil
		},
	})
	for i, r := range routes {
		if r.For == access.Bearers {
			routes[i].Handler = a.web.told(r.Handler)
		}
	}
	return routes
}

// fleetSources tell what this server knows of devices.
func fleetSources(a *App) fleet.Sources {
	return fleet.Sources{
		Known: a.book.List, Contacts: a.seen.devices.Log.Heads, Named: a.outside.Name, Agent: a.crew.agentOf,
		Details: func(ctx context.Context) (map[string]fleet.Detail, error) {
			if a.stored == nil {
				return nil, nil
			}
			all := map[string]fleet.Detail{}
			rows, err := a.stored.Devices.Presences(ctx)
			for _, r := range rows {
				all[r.DeviceID] = fleet.Detail{Owner: r.OwnerID, Talked: r.TurnAt}
			}
			return all, err
		},
	}
}
