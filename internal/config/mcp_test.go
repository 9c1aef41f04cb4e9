package config

import (
	"os"
	"path/filepath"
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
	files, err := all["my.files"].Entry().Config()
	if err != nil || files.Transport != external.Stdio || files.Timeout != 90*time.Second || files.Env["KEY"] != "k1" || files.Env["PORT"] != "80" ||
		!slices.Equal(files.Args, []string{"-y", "@example/server", "8080"}) || files.Kinds["a.b"] != "control" {
		t.Errorf("files %+v, %v", files.Args, err)
	}
	maps, err := all["maps"].Entry().Config()
	if err != nil || maps.Transport != external.HTTP || !maps.Legacy || !maps.Defaults || files.Defaults || maps.URL != "https://h/mcp?key=k1" || maps.Headers["X"] != "k1" || maps.Deny[0] != "d*" {
		t.Errorf("maps %v, %v", maps, err)
	}
}

func TestMCPProblems(t *testing.T) {
	for text, want := range map[string]string{
		"external: {mcpServers: {a: {}}}":                                                             "tools.external.mcpServers.a: there is neither a command nor a url",
		"external: {mcpServers: {a: {comand: x}}}":                                                    "did you mean tools.external.mcpServers.a.command?",
		"external: {mcpServers: {a: {command: x, url: 'http://h'}}}":                                  "both a command and a url",
		"external: {mcpServers: {a: {url: 'http://s3cret key\\x'}}}":                                  "no full address",
		"external: {mcpServers: {a: {command: x, protocol: new, timeout: -1}}}":                       "neither auto nor legacy",
		"external: {mcpServers: {a: {command: x, elicitation: accept}}}":                              "neither decline nor defaults",
		"external: {mcpServers: {a: {command: x, kinds: {y: soon}}}}":                                 "neither control nor query",
		"external: {mcpServers: {a: {command: '${NOT_SET}'}}}":                                        "NOT_SET is not set",
		"endpoint: {enabled: true}":                                                                   "no token",
		"endpoint: {enabled: true, tokens: [{name: a, token: '${NOT_SET}'}]}":                         "tools.endpoint.tokens.0: the token is empty",
		"endpoint: {enabled: true, tokens: [{token: s3cret-of-sixteen}, {token: s3cret-of-sixteen}]}": "is there twice",
		"endpoint: {enabled: true, tokens: [{token: s3cret-of-fifte}]}":                               "tools.endpoint.tokens.0: the token is too short: at least 16",
		"endpoint: {tokens: [{token: a, deny: ['[']}]}":                                               "no pattern",
		"endpoint: {tokens: [{token: a, kinds: {x: y}}]}":                                             "none of: control, query",
		"offer: [{url: 'http://h/s3cret'}]":                                                           "tools.offer.0.url: url: this is no address",
		"offer: [{url: 'ws://h', sources: [devices]}]":                                                "none of: local, file, device, external, gateway",
		"offer: [{url: 'ws://h', allow: ['[']}]":                                                      "no pattern",
	} {
		_, err := loadText(t, "tools: {"+text+"}")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestOfferWithoutVariable is left out, with a line that says so.
func TestOfferWithoutVariable(t *testing.T) {
	c, warnings, err := Load(Options{File: writeFile(t, "config.yaml", "tools: {offer: [{url: 'wss://h/?token=${NOT_SET}'}]}")})
	if err != nil || len(warnings) != 1 || !strings.Contains(string(warnings[0]), "tools.offer.0.url is empty") || c.Tools.Offer[0].URL != "" {
		t.Errorf("%v, %v", warnings, err)
	}
}

// TestOfferOfServers: where no server is passed on, an offer of their tools is said to be empty.
func TestOfferOfServers(t *testing.T) {
	for text, want := range map[string]int{
		"tools: {offer: [{url: 'wss://h/', sources: [local, external]}]}":                           1,
		"tools: {offer: [{url: 'wss://h/', sources: [local, external]}]}\nmcp: {pass_on: ['maps']}": 0,
		"tools: {offer: [{url: 'wss://h/', sources: [device, file, gateway]}]}":                     0,
	} {
		_, warnings, err := Load(Options{File: writeFile(t, "config.yaml", text)})
		if err != nil || len(warnings) != want || want > 0 && !strings.Contains(string(warnings[0]), "tools.offer.0.sources names external") {
			t.Errorf("%s: %v, %v", text, warnings, err)
		}
	}
	if _, err := loadText(t, "tools: {offer: [{url: 'wss://h/', sources: [house]}]}"); err == nil || !strings.Contains(err.Error(), "is none of: local, file, device, external, gateway") {
		t.Error(err)
	}
}

func TestGatewayProblems(t *testing.T) {
	for text, want := range map[string]string{
		"mcp: {listen: [here]}":                                "mcp.listen",
		"mcp: {pass_on: ['[']}":                                "mcp.pass_on",
		"mcp: {tokens: [{name: a, token: b, streams: ['[']}]}": "mcp.tokens.0.streams",
		"mcp: {tokens: [{name: a, token: b, rate: -1}]}":       "mcp.tokens.0.rate",
		"mcp: {tokens: [{name: a, token: fifteen-letters}]}":   "mcp.tokens.0.token: the token is too short: at least 16",
		"mcp: {tokens: [{name: a, token: ''}]}":                "mcp.tokens.0.token: the token is empty",
		"server: {public_url: 'https://h.example.org'}":        "1: server.public_url: the server can then be reached from elsewhere, so programs that use it need tokens: set mcp.tokens",
		"server: {trust_proxy: true}":                          "1: server.trust_proxy: the server can then be reached from elsewhere, so programs that use it need tokens: set mcp.tokens",
		"mcp: {port: 65536}":                                   "mcp.port",
		"mcp: {autoRegister: true}":                            "did you mean",
	} {
		if _, _, err := Load(Options{File: writeFile(t, "yaml", text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A server that is reached from elsewhere starts with tokens, or with nothing that they
// would guard.
func TestReachable(t *testing.T) {
	for _, text := range []string{
		"server: {public_url: 'https://h.example.org', trust_proxy: true}\nmcp: {tokens: [{name: a, token: sixteen-letters-}]}",
		"server: {public_url: 'https://h.example.org', trust_proxy: true}\nmcp: {enabled: false}",
		"",
	} {
		if _, _, err := Load(Options{File: writeFile(t, "yaml", text)}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Settings in the data folder that others may change are not used.
func TestOpenDataConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte("llm: [rules]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(Options{DataDir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(Options{DataDir: dir}); err == nil || !strings.Contains(err.Error(), "chmod go-w "+file) {
		t.Errorf("%v", err)
	}
}
