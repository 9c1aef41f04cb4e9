package app

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/secret"
)

// external makes the fleet of other people's MCP servers, the endpoint where
// they dial in, and the offers of our own tools. Nothing starts before warm.
func (a *App) external(ctx context.Context, own mcp.Source, from secret.Sources) (*external.Set, error) {
	cfg := a.cfg
	file := filepath.Join(a.options.Data, "mcp_servers.json")
	servers := externalServers(cfg, a.report)
	reportFile(ctx, file, from, a.report)
	fleet := external.NewSet(external.Options{
		Servers: servers, File: file, Secrets: from,
		ServerOptions: external.ServerOptions{Version: Version, Log: a.log},
	})
	// A signal ends the listening first; running replies may still call tools.
	life := context.WithoutCancel(ctx)
	a.life.atEnd(func() { fleet.Stop() })
	a.life.early(func() error { return fleet.Start(life) })
	if cfg.Tools.Endpoint.Enabled {
		var tokens []external.Token
		for _, t := range cfg.Tools.Endpoint.Tokens {
			tokens = append(tokens, external.Token{
				Name: t.Name, Secret: string(t.Token), Device: t.Device, Allow: t.Allow, Deny: t.Deny, Kinds: t.Kinds, Trust: t.Trust,
			})
		}
		a.forces.endpoint = fleet.Endpoint(tokens)
		a.report.Line("  MCP  " + message.Both("app/endpoint") + ": /mcp/endpoint/?token=…")
	}
	for _, o := range cfg.Tools.Offer {
		if o.URL == "" {
			continue
		}
		if err := a.offer(life, o, own, fleet); err != nil {
			return nil, err
		}
	}
	return fleet, nil
}

// externalServers returns the configs of the servers that are switched on.
func externalServers(cfg *config.Config, found *engines.Report) map[string]external.Config {
	out, all := map[string]external.Config{}, cfg.Tools.External.MCPServers
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if s.Disabled {
			continue
		}
		if len(s.MissingEnv) > 0 {
			found.Missing("MCP", name, fmt.Errorf("%s is not set", strings.Join(s.MissingEnv, ", ")))
			continue
		}
		c, err := s.Entry().Config()
		if err != nil {
			found.Missing("MCP", name, err)
			continue
		}
		c.Careful = cfg.OriginOf([]string{"tools", "external", "mcpServers", name, "url"}).Layer == config.LayerConsole
		out[name] = c
		found.Line(fmt.Sprintf("  MCP  %s (%s)%s", name, c.Transport, asking(c)))
	}
	return out
}

// asking says that tools of a server need the user's yes, where they may.
func asking(c external.Config) string {
	if c.Trust {
		return ""
	}
	return ": " + message.Both("app/mcp-asks")
}

// reportFile reports the servers in the file as it is now. It may change at any time.
func reportFile(ctx context.Context, file string, from secret.Sources, found *engines.Report) {
	configs, problems, err := external.CheckFile(ctx, file, from)
	if err != nil {
		found.Missing("MCP", file, err)
	}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		found.Line(fmt.Sprintf("  MCP  %s (%s, %s)%s", name, configs[name].Transport, file, asking(configs[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		found.Missing("MCP", name, problems[name])
	}
}

// offer makes one offer of our tools.
func (a *App) offer(ctx context.Context, o config.Offer, own, fleet mcp.Source) error {
	var sources []mcp.Source
	if len(o.Sources) == 0 || slices.Contains(o.Sources, "local") {
		sources = append(sources, own)
	}
	if slices.Contains(o.Sources, "external") {
		sources = append(sources, fleet)
	}
	l := limitsOfOffer(a.cfg, o)
	box := router.New(router.Options{Rules: l.Rules, Kinds: l.Kinds, Times: l.Times, Words: a.cfg.MCP.Transcripts, Log: a.log}, sources...)
	offer, err := external.NewOffer(external.OfferOptions{URL: string(o.URL), Tools: box, Version: Version, Log: a.log})
	if err != nil {
		return fmt.Errorf("tools.offer: %w", err)
	}
	a.forces.offers = append(a.forces.offers, offered{o, box})
	a.life.atEnd(box.Close)
	a.life.atEnd(func() { offer.Stop() })
	a.life.early(func() error { return offer.Start(ctx) })
	return nil
}
