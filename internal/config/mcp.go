package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/providers"
)

// External names other people's MCP servers.
type External struct {
	MCPServers map[string]MCPServer `koanf:"mcpServers"` // the shape that desktop clients use
}

// MCPServer is one external server: a program to run, or an address.
type MCPServer struct {
	Command string                      `koanf:"command"`
	Args    []string                    `koanf:"args"`
	Env     map[string]providers.Secret `koanf:"env"` // beside the few harmless variables that it inherits
	Cwd     string                      `koanf:"cwd"` // "": the server's own folder
	URL     providers.Secret            `koanf:"url"` // many hold a key
	Headers map[string]providers.Secret `koanf:"headers"`

	EnvFile    map[string]string `koanf:"env_file"` // names of variables to files whose content they become
	URLFile    string            `koanf:"url_file"` // its content becomes URL
	HeaderFile map[string]string `koanf:"headers_file"`

	Transport string              `koanf:"transport"` // stdio, sse, http, websocket; "": as command and url say
	Type      string              `koanf:"type"`      // another name for transport
	Disabled  bool                `koanf:"disabled"`
	Allow     []string            `koanf:"allow"`   // patterns of tool names; empty: all
	Deny      []string            `koanf:"deny"`    // patterns of tool names
	Kinds     map[string]mcp.Kind `koanf:"kinds"`   // pattern of a tool name to control or query
	Timeout   string              `koanf:"timeout"` // of one call: 30s, or a number of seconds; "": 60 s
	Trust     bool                `koanf:"trust"`   // its tools need no yes unless they say that they destroy something
	Protocol  string              `koanf:"protocol"`

	ClientID     string           `koanf:"client_id"` // of a login by OAuth that was registered by hand
	ClientSecret providers.Secret `koanf:"client_secret"`
	ClientFile   string           `koanf:"client_secret_file"` // its content becomes ClientSecret
	Scopes       []string         `koanf:"scopes"`             // of a login, beside those that the server names

	Sampling int `koanf:"sampling"` // answers of our language model that it may have in an hour; 0: none

	Roots []string `koanf:"roots"` // folders that it may work in: absolute paths, or file URIs

	Elicitation string `koanf:"elicitation"` // answer to its questions to a person: decline (""), or defaults: accept what its defaults fill in

	// MissingEnv names the variables that its secrets refer to and that are
	// not set. A server with any is left out.
	MissingEnv []string `koanf:"-"`
}

// Endpoint configures the address where tool servers dial in.
type Endpoint struct {
	Enabled bool            `koanf:"enabled"`
	Tokens  []EndpointToken `koanf:"tokens"`
}

// EndpointToken lets tool servers in that show it.
type EndpointToken struct {
	Name   string              `koanf:"name"` // what they are called; "": endpoint
	Token  providers.Secret    `koanf:"token"`
	File   string              `koanf:"token_file"` // its content becomes Token
	Device string              `koanf:"device"`     // Device-Id that alone has their tools; "": all
	Allow  []string            `koanf:"allow"`
	Deny   []string            `koanf:"deny"`
	Kinds  map[string]mcp.Kind `koanf:"kinds"`
	Trust  bool                `koanf:"trust"` // as in MCPServer
}

// Offer is an endpoint of another program that our tools are offered to.
type Offer struct {
	URL     providers.Secret `koanf:"url"`      // ws or wss, with its token; "": left out
	File    string           `koanf:"url_file"` // its content becomes URL
	Sources []string         `koanf:"sources"`  // of the tools that the gateway offers: local, file, device, external, gateway; empty: all
	Allow   []string         `koanf:"allow"`
	Deny    []string         `koanf:"deny"`
}

// Entry returns the server as mcp/external reads it.
func (c MCPServer) Entry() external.Entry {
	e := external.Entry{
		Type: c.Type, Transport: c.Transport, Command: c.Command, Cwd: c.Cwd, URL: string(c.URL),
		Env: entryTexts(c.Env), Headers: entryTexts(c.Headers), Disabled: c.Disabled,
		Allow: c.Allow, Deny: c.Deny, Kinds: c.Kinds, Timeout: external.Text(c.Timeout), Trust: c.Trust, Protocol: c.Protocol,
		ClientID: external.Text(c.ClientID), ClientSecret: external.Text(c.ClientSecret), Scopes: c.Scopes, Elicitation: c.Elicitation, Sampling: c.Sampling,
	}
	for _, arg := range c.Args {
		e.Args = append(e.Args, external.Text(arg))
	}
	for _, root := range c.Roots {
		e.Roots = append(e.Roots, external.Text(root))
	}
	return e
}

func entryTexts(m map[string]providers.Secret) map[string]external.Text {
	out := make(map[string]external.Text, len(m))
	for name, value := range m {
		out[name] = external.Text(value)
	}
	return out
}

func (ch checker) checkMCP(t Tools, m MCP) {
	for _, name := range slices.Sorted(maps.Keys(t.External.MCPServers)) {
		s := t.External.MCPServers[name]
		if s.Disabled || len(s.MissingEnv) > 0 || isSealed(s.URL) {
			continue
		}
		if _, err := s.Entry().Config(); err != nil {
			ch.bad(key("tools", "external", "mcpServers", name), "config/mcp-server", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	ch.checkEndpoint(t.Endpoint)
	for i, o := range t.Offer {
		at := []string{"tools", "offer", fmt.Sprint(i)}
		for _, source := range o.Sources {
			ch.oneOf(source, []string{"local", "file", "device", "external", "gateway"}, append(at, "sources")...)
		}
		ch.patterns(o.Allow, append(at, "allow")...)
		ch.patterns(o.Deny, append(at, "deny")...)
		if slices.Contains(o.Sources, "external") && len(m.PassOn) == 0 {
			ch.warnings = append(ch.warnings, Warning(message.Both("config/offer-external", keyName(append(at, "sources")))))
		}
		if o.URL == "" {
			ch.warnings = append(ch.warnings, Warning(message.Both("config/offer-empty", keyName(at))))
			continue
		}
		if isSealed(o.URL) {
			continue
		}
		if _, err := external.NewOffer(external.OfferOptions{URL: string(o.URL)}); err != nil {
			ch.bad(append(at, "url"), "config/offer-url", err)
		}
	}
}

func (ch checker) checkEndpoint(e Endpoint) {
	if e.Enabled && len(e.Tokens) == 0 {
		ch.bad(key("tools", "endpoint", "enabled"), "config/endpoint-no-token")
	}
	seen := map[providers.Secret]bool{}
	for i, token := range e.Tokens {
		at := []string{"tools", "endpoint", "tokens", fmt.Sprint(i)}
		switch {
		case e.Enabled && len(token.Token) < MinToken:
			ch.token(string(token.Token), "config/endpoint-token-empty", at...)
		case e.Enabled && seen[token.Token]:
			ch.bad(at, "config/endpoint-token-twice")
		}
		seen[token.Token] = true
		for _, pattern := range slices.Sorted(maps.Keys(token.Kinds)) {
			ch.oneOf(string(token.Kinds[pattern]), []string{"control", "query"}, append(at, "kinds", pattern)...)
			ch.patterns([]string{pattern}, append(at, "kinds", pattern)...)
		}
		ch.patterns(token.Allow, append(at, "allow")...)
		ch.patterns(token.Deny, append(at, "deny")...)
	}
}
