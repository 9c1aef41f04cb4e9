package app

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xiaozhi/audio/stream"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/routine"
	"xiaozhi/internal/sealed"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/version"
	"xiaozhi/internal/world"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/secret"
	"xiaozhi/providers"
)

// external makes the fleet of other people's MCP servers, and the endpoint where
// they dial in. Nothing starts before warm.
func (a *App) external(ctx context.Context, from secret.Sources) *external.Set {
	cfg := a.cfg
	file := filepath.Join(a.options.Data, "mcp_servers.json")
	servers := externalServers(cfg, a.report)
	reportFile(ctx, file, from, a.report)
	o := external.ServerOptions{
		Version: version.Number(), Log: a.log, Watch: watchOf(a),
		Updated: func(ctx context.Context, uri string) { a.gateway.Updated(ctx, uri) },
		Answers: answersOf(a),
	}
	if a.stored != nil {
		o.Grants = sealed.Grants{Vault: vault(a.stored, cfg, a.options.Data)}
	}
	fleet := external.NewSet(external.Options{Servers: servers, File: file, Secrets: from, ServerOptions: o})
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
	return fleet
}

// reportWorld reports what of the world can be asked, and what is left out.
func reportWorld(a *App, cfg *config.Config, w local.World) {
	if found := world.Found(cfg.Tools, w); found != "" {
		a.report.Line("  WEB  " + found)
	}
	if _, missing, _ := cfg.Tools.Search.Engine(os.Getenv); missing != "" { // that it can be made was seen just before
		a.report.Missing("WEB", cfg.Tools.Search.Service, fmt.Errorf("%s is not set", missing))
	}
}

// musicOf makes the music folder and the stations. What plays ends with the program.
func musicOf(ctx context.Context, a *App, cfg *config.Config) *world.Library {
	playing, stop := context.WithCancel(context.WithoutCancel(ctx)) // replies are played out after a signal
	a.life.atEnd(stop)
	return world.NewLibrary(playing, cfg.Tools.Music, a.options.Data, stream.Options{Log: a.log})
}

// watchOf tells routines of resources of other people's servers that have changed.
func watchOf(a *App) external.Watch {
	if a.outside.routines == nil {
		return external.Watch{}
	}
	return external.Watch{
		Wanted: func(server string) []string { return a.outside.routines.Resources()[server] },
		Changed: func(server, uri, text string) {
			a.outside.routines.Happened(routine.Event{Server: server, Resource: uri, Text: text})
		},
	}
}

// answersOf has the language model of the settings answer external servers.
func answersOf(a *App) func(context.Context, external.Ask) (external.Answer, error) {
	return func(ctx context.Context, q external.Ask) (external.Answer, error) {
		llm := a.cast.main.Load().LLM
		if llm == nil {
			return external.Answer{}, external.ErrNoModel
		}
		return answerTo(ctx, llm, q)
	}
}

// answerTo has a model answer what a server asks. It is given that, and nothing else.
func answerTo(ctx context.Context, llm providers.LLM, q external.Ask) (answer external.Answer, err error) {
	var req providers.LLMRequest
	if q.System != "" {
		req.Messages = append(req.Messages, providers.Message{Role: providers.RoleSystem, Content: q.System})
	}
	for _, m := range q.Messages {
		role := providers.RoleUser
		if m.Assistant {
			role = providers.RoleAssistant
		}
		req.Messages = append(req.Messages, providers.Message{Role: role, Content: m.Text})
	}
	var said strings.Builder
	for d, err := range llm.Generate(ctx, req) {
		if err != nil {
			return answer, err
		}
		if d.Fallback {
			return answer, external.ErrNoModel
		}
		answer.Model = d.Provider
		if said.WriteString(d.Text); said.Len() > q.Most {
			answer.Cut = true
			break
		}
	}
	answer.Text = text.Cut(said.String(), q.Most)
	return answer, nil
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
	if c, is, err := world.HomeServer(cfg.Tools.Home); err != nil {
		found.Missing("MCP", world.HomeName, err)
	} else if is {
		out[world.HomeName] = c
		found.Line(fmt.Sprintf("  MCP  %s (Home Assistant)", world.HomeName))
	}
	return out
}

// homeOf makes the source of Home Assistant's things, nil if there is none. It starts with the program.
func homeOf(ctx context.Context, a *App) mcp.Source {
	h, err := world.Home(a.cfg.Tools.Home, a.log)
	if err != nil {
		a.report.Missing("WEB", "home", err)
	}
	if h == nil {
		return nil
	}
	a.report.Line("  WEB  home (Home Assistant)")
	life := context.WithoutCancel(ctx) // a signal ends the listening first; running replies may still work things
	a.life.atEnd(func() { h.Stop() })
	a.life.early(func() error { return h.Start(life) })
	return h
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

// offers makes the offers of our tools to endpoints of others, which the gateway serves. It must be there.
func (a *App) offers(ctx context.Context) error {
	life := context.WithoutCancel(ctx)
	for i, o := range a.cfg.Tools.Offer {
		if o.URL == "" {
			continue
		}
		e := gateway.Endpoint{
			Name: fmt.Sprintf("tools.offer.%d", i), Where: external.PublicURL(string(o.URL)), Sources: o.Sources,
			Rules: router.Rules{Allow: o.Allow, Deny: o.Deny}, Language: text.TagOf(a.cfg.Server.Language),
		}
		offer, err := external.NewOffer(external.OfferOptions{
			URL: string(o.URL), Version: version.Number(), Log: a.log, Connect: a.gateway.Serving(e),
		})
		if err != nil {
			return fmt.Errorf("tools.offer: %w", err)
		}
		a.life.atEnd(func() { offer.Stop() })
		a.life.early(func() error { return offer.Start(life) })
	}
	return nil
}
