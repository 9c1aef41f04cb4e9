package app

import (
	"context"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/prompts"
)

// outward makes what is offered to others: the gateway over the devices, our own
// tools, and those of other people's servers that are passed on.
func (a *App) outward(own mcp.Source, fleet *external.Set, set *prompts.Set) {
	cfg := a.cfg
	o := gateway.Options{
		Disabled: !cfg.MCP.Enabled, Access: gatewayAccess(cfg), Version: Version, Log: a.log, Zone: cfg.Server.Zone(),
		Offer: offer.Options{Assistant: cfg.Agent.Name, ToolsDir: filepath.Join(a.options.Data, "tools")},
	}
	if cfg.MCP.AutoRegister {
		o.Offer.Devices, o.Offer.Local, o.Offer.Prompts = a.outside, withoutDenied{own, cfg.Tools.Deny}, set
		o.Offer.Acts, o.Offer.States = a.outside.acts(), a.outside.states
		o.Offer.Config = cfg.Redacted
		o.Offer.LogTail = a.tail.Text
		if cfg.MCP.Transcripts {
			o.Offer.Transcript = a.outside.transcript
		}
		if len(cfg.MCP.PassOn) > 0 {
			shared := sharedTools{fleet, cfg.MCP.PassOn, cfg.Tools.Deny}
			o.Offer.Shared, o.Offer.CallShared = shared.list, shared.call
		}
	}
	a.gateway = gateway.New(o)
	a.outside.devices.Watch(a.gateway)
	a.life.atEnd(a.gateway.Close)
}

// ownAddresses are those that mcp.listen and mcp.port add to server.listen.
func ownAddresses(cfg *config.Config) []string {
	own := slices.Clone(cfg.MCP.Listen)
	for _, address := range cfg.Server.Listen {
		if host, _, err := net.SplitHostPort(address); err == nil && cfg.MCP.Port != 0 {
			own = append(own, net.JoinHostPort(host, strconv.Itoa(cfg.MCP.Port)))
		}
	}
	slices.Sort(own)
	return slices.DeleteFunc(slices.Compact(own), func(a string) bool { return slices.Contains(cfg.Server.Listen, a) })
}

// withoutDenied is a source without the tools that the config denies everybody.
type withoutDenied struct {
	mcp.Source
	deny []string
}

// GetAvailableTools lists those that are left.
func (s withoutDenied) GetAvailableTools() []mcp.Tool {
	return slices.DeleteFunc(s.Source.GetAvailableTools(), func(t mcp.Tool) bool { return fitsAny(s.deny, t.Name) })
}

// sharedTools are the tools of other people's servers that are passed on.
type sharedTools struct {
	fleet  *external.Set
	passOn []string // patterns of the servers' names
	deny   []string // patterns of tools that nobody is offered
}

func (s sharedTools) list() []mcp.Tool {
	var out []mcp.Tool
	for _, t := range s.fleet.GetAvailableTools() {
		if fitsAny(s.passOn, strings.TrimPrefix(t.Source, "external:")) && !fitsAny(s.deny, t.Name) {
			out = append(out, t)
		}
	}
	return out
}

func (s sharedTools) call(ctx context.Context, source, name string, arguments map[string]any) (any, error) {
	for _, server := range s.fleet.Sources() {
		if named, ok := server.(interface{ Name() string }); ok && "external:"+named.Name() == source {
			return server.CallTool(ctx, name, arguments)
		}
	}
	return nil, mcp.ErrNoTool
}

// fitsAny reports whether a name fits one of the patterns, which config.Load has checked.
func fitsAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// gatewayAccess returns the rules of access to the gateway.
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
