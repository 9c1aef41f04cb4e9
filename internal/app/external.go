package app

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/router"
)

// external makes the fleet of other people's MCP servers, the endpoint where
// they dial in, and the offers of our own tools. Nothing starts before warm.
func (r *App) external(ctx context.Context, cfg *config.Config, data string, own mcp.Source) (*external.Fleet, error) {
	file := filepath.Join(data, "mcp_servers.json")
	servers := r.servers(cfg.Tools.External.MCPServers)
	r.reportFile(file)
	fleet := external.NewFleet(external.Options{
		Servers: servers, File: file, Lookup: os.LookupEnv,
		ServerOptions: external.ServerOptions{Version: Version, Log: r.log},
	})
	// A signal ends the listening first; running replies may still call tools.
	life := context.WithoutCancel(ctx)
	r.closers = append(r.closers, func() { fleet.Stop() })
	r.early(func() error { return fleet.Start(life) })
	if cfg.Tools.Endpoint.Enabled {
		var tokens []external.Token
		for _, t := range cfg.Tools.Endpoint.Tokens {
			tokens = append(tokens, external.Token{
				Name: t.Name, Secret: string(t.Token), Device: t.Device, Allow: t.Allow, Deny: t.Deny, Kinds: t.Kinds,
			})
		}
		r.endpoint = fleet.Endpoint(tokens)
		r.lines = append(r.lines, "  MCP  tool servers dial in at / 工具服务接入点: /mcp/endpoint/?token=…")
	}
	for _, o := range cfg.Tools.Offer {
		if o.URL == "" {
			continue
		}
		if err := r.offer(life, cfg, o, own, fleet); err != nil {
			return nil, err
		}
	}
	return fleet, nil
}

// early has f run before the engines are loaded. f does not wait.
func (r *App) early(f func() error) {
	r.warmers = slices.Insert(r.warmers, 0, func(context.Context) error { return f() })
}

// servers are the configs of those that are switched on.
func (r *App) servers(all map[string]config.MCPServer) map[string]external.Config {
	out := map[string]external.Config{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if s.Disabled {
			continue
		}
		if len(s.MissingEnv) > 0 {
			r.missing("MCP", name, fmt.Errorf("%s is not set", strings.Join(s.MissingEnv, ", ")))
			continue
		}
		c, err := s.Entry().Config()
		if err != nil {
			r.missing("MCP", name, err)
			continue
		}
		out[name] = c
		r.lines = append(r.lines, fmt.Sprintf("  MCP  %s (%s)", name, c.Transport))
	}
	return out
}

// reportFile notes what the file of servers says now. It may change at any time.
func (r *App) reportFile(file string) {
	configs, problems, err := external.CheckFile(file, os.LookupEnv)
	if err != nil {
		r.missing("MCP", file, err)
	}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		r.lines = append(r.lines, fmt.Sprintf("  MCP  %s (%s, %s)", name, configs[name].Transport, file))
	}
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		r.missing("MCP", name, problems[name])
	}
}

// offer makes one offer of our tools.
func (r *App) offer(ctx context.Context, cfg *config.Config, o config.Offer, own mcp.Source, fleet mcp.Source) error {
	var sources []mcp.Source
	if len(o.Sources) == 0 || slices.Contains(o.Sources, "local") {
		sources = append(sources, own)
	}
	if slices.Contains(o.Sources, "external") {
		sources = append(sources, fleet)
	}
	box := router.New(router.Options{
		Kinds: cfg.Tools.Kinds, Allow: o.Allow, Deny: slices.Concat(cfg.Tools.Deny, o.Deny), Log: r.log,
	}, sources...)
	offer, err := external.NewOffer(external.OfferOptions{URL: string(o.URL), Tools: box, Version: Version, Log: r.log})
	if err != nil {
		return fmt.Errorf("tools.offer: %w", err)
	}
	r.closers = append(r.closers, box.Close, func() { offer.Stop() })
	r.early(func() error { return offer.Start(ctx) })
	return nil
}
