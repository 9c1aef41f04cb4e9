package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/mcp/external"
)

// TestMCPServers: the shape of desktop clients, as it is written in YAML.
func TestMCPServers(t *testing.T) {
	c := mustLoadText(t, `
tools:
  external:
    mcpServers:
      my.files: {command: npx, args: [-y, "${PKG}", 8080], env: {KEY: "${KEY}", PORT: 80}, timeout: 90, kinds: {a.b: control}}
      maps: {type: streamableHttp, url: "https://h/mcp?key=${KEY}", headers: {X: "${KEY}"}, deny: [d*], protocol: legacy, elicitation: defaults}
      off: {disabled: true, url: "${GONE}"}
      poor: {url: "https://h/${GONE}", headers: {A: "${LOST:-x}"}}
`, "KEY=k1", "PKG=@example/server", "XIAOZHI_TOOLS__EXTERNAL__MCPSERVERS__MAPS__CWD=/srv")
	all := c.Tools.External.MCPServers
	if len(all) != 4 || !slices.Equal(all["poor"].MissingEnv, []string{"GONE"}) || all["maps"].Cwd != "/srv" {
		t.Fatalf("%+v", all)
	}
	r := &rooms{log: slog.New(slog.DiscardHandler)}
	got := r.servers(all)
	files, maps := got["my.files"], got["maps"]
	if len(got) != 2 || files.Transport != external.Stdio || files.Timeout != 90*time.Second || files.Env["KEY"] != "k1" || files.Env["PORT"] != "80" ||
		!slices.Equal(files.Args, []string{"-y", "@example/server", "8080"}) || files.Kinds["a.b"] != "control" {
		t.Errorf("files %+v", files.Args)
	}
	if maps.Transport != external.HTTP || !maps.Legacy || !maps.Defaults || files.Defaults || maps.URL != "https://h/mcp?key=k1" || maps.Headers["X"] != "k1" || maps.Deny[0] != "d*" {
		t.Errorf("maps %v", maps)
	}
	if text := strings.Join(r.lines, "\n"); !strings.Contains(text, "poor") || !strings.Contains(text, "GONE is not set") || strings.Contains(text, "k1") {
		t.Errorf("lines:\n%s", text)
	}
}

func TestMCPProblems(t *testing.T) {
	for text, want := range map[string]string{
		"external: {mcpServers: {a: {}}}":                                       "tools.external.mcpServers.a: there is neither a command nor a url",
		"external: {mcpServers: {a: {comand: x}}}":                              "did you mean tools.external.mcpServers.a.command?",
		"external: {mcpServers: {a: {command: x, url: 'http://h'}}}":            "both a command and a url",
		"external: {mcpServers: {a: {url: 'http://s3cret key\\x'}}}":            "no full address",
		"external: {mcpServers: {a: {command: x, protocol: new, timeout: -1}}}": "neither auto nor legacy",
		"external: {mcpServers: {a: {command: x, elicitation: accept}}}":        "neither decline nor defaults",
		"external: {mcpServers: {a: {command: x, kinds: {y: soon}}}}":           "neither control nor query",
		"external: {mcpServers: {a: {command: '${NOT_SET}'}}}":                  "NOT_SET is not set",
		"endpoint: {enabled: true}":                                             "no token",
		"endpoint: {enabled: true, tokens: [{name: a, token: '${NOT_SET}'}]}":   "tools.endpoint.tokens.0: the token is empty",
		"endpoint: {enabled: true, tokens: [{token: s3cret}, {token: s3cret}]}": "is there twice",
		"endpoint: {tokens: [{token: a, deny: ['[']}]}":                         "no pattern",
		"endpoint: {tokens: [{token: a, kinds: {x: y}}]}":                       "none of: control, query",
		"offer: [{url: 'http://h/s3cret'}]":                                     "tools.offer.0.url: url: this is no address",
		"offer: [{url: 'ws://h', sources: [devices]}]":                          "none of: local, external",
		"offer: [{url: 'ws://h', allow: ['[']}]":                                "no pattern",
	} {
		_, err := loadText(t, "tools: {"+text+"}")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestOfferWithoutItsVariable is left out, with a line that says so.
func TestOfferWithoutItsVariable(t *testing.T) {
	c, warnings, err := LoadConfig(LoadOptions{File: writeFile(t, "config.yaml", "tools: {offer: [{url: 'wss://h/?token=${NOT_SET}'}]}")})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "tools.offer.0.url is empty") || c.Tools.Offer[0].URL != "" {
		t.Errorf("%v, %v", warnings, err)
	}
}

// TestFileOfServersIsReported: also what is wrong with it, before anything starts.
func TestFileOfServersIsReported(t *testing.T) {
	report := func(text string) string {
		r := &rooms{log: slog.New(slog.DiscardHandler)}
		r.reportFile(writeFile(t, "mcp_servers.json", text))
		return strings.Join(r.lines, "\n")
	}
	if got := report(`{"mcpServers":{"a":{"command":"x"},"b":{}}}`); !strings.Contains(got, "a (stdio, ") || !strings.Contains(got, "b: left out") {
		t.Error(got)
	}
	if got := report(`{"mcpServers":`); !strings.Contains(got, "line 1, column 14") {
		t.Error(got)
	}
	r := &rooms{}
	if r.reportFile("no-such-file.json"); len(r.lines) > 0 {
		t.Error(r.lines)
	}
}
