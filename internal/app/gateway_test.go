package app

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"xiaozhi/internal/config"
)

// TestGatewayConfig: what is written about the gateway is what it gets.
func TestGatewayConfig(t *testing.T) {
	c := mustLoadText(t, `
server: {public_url: "https://speaker.example.org:8443/x"}
mcp:
  enabled: false
  auto_register: false
  listen: ["127.0.0.1:9000"]
  hosts: [nas.lan]
  origins: ["https://inspector.example.org"]
  pass_on: ["maps*"]
  transcripts: true
  tokens: [{name: a, token: "${T}", streams: ["device-*"], rate: 5, read_only: true}]
`, "T=t0p-of-the-tokens")
	if c.MCP.Enabled || c.MCP.AutoRegister || !c.MCP.Transcripts || c.MCP.Listen[0] != "127.0.0.1:9000" || c.MCP.PassOn[0] != "maps*" {
		t.Errorf("%+v", c.MCP)
	}
	a := gatewayAccess(c)
	if token := a.Tokens[0]; token.Token != "t0p-of-the-tokens" || token.Streams[0] != "device-*" || token.Rate != 5 || !token.ReadOnly {
		t.Errorf("%d tokens", len(a.Tokens))
	}
	if strings.Join(a.Hosts, " ") != "nas.lan speaker.example.org" || a.Origins[0] != "https://inspector.example.org" {
		t.Errorf("hosts %v, origins %v", a.Hosts, a.Origins)
	}
}

// TestOwnAddresses: contradiction 11 of the seeds, a port of its own and the
// server's: both can be had, with the same routes, and the server's is no second one.
func TestOwnAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"server: {listen: ['0.0.0.0:8000', '[::1]:8000']}":                                          "",
		"server: {listen: ['0.0.0.0:8000', '[::1]:8000']}\nmcp: {port: 8000}":                       "",
		"server: {listen: ['0.0.0.0:8000', '[::1]:8001']}\nmcp: {port: 8001}":                       "0.0.0.0:8001",
		"mcp: {port: 9000, listen: ['127.0.0.1:9001']}":                                             "127.0.0.1:9001 :9000",
		"server: {listen: ['127.0.0.1:1']}\nmcp: {port: 2, listen: ['127.0.0.1:2', '127.0.0.1:1']}": "127.0.0.1:2",
	} {
		if got := strings.Join(ownAddresses(mustLoadText(t, text)), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestLogTail: the last lines of the log are kept, in order.
func TestLogTail(t *testing.T) {
	tail := &logTail{}
	log := slog.New(slog.NewTextHandler(tail, nil))
	for i := range tailLines + 5 {
		log.Info("line", "n", i)
	}
	for lines, text := range map[int]string{toldLines: tail.Text(), tailLines: tail.All()} {
		if strings.Count(text, "\n") != lines || strings.Contains(text, fmt.Sprintf("n=%d\n", tailLines+4-lines)) || !strings.HasSuffix(text, fmt.Sprintf("n=%d\n", tailLines+4)) {
			t.Errorf("%d lines, want %d, …%s", strings.Count(text, "\n"), lines, text[len(text)-80:])
		}
	}
}

// TestTailOptions: arguments, which may hold what was said, can be read outside
// only where conversations can.
func TestTailOptions(t *testing.T) {
	for _, transcripts := range []bool{false, true} {
		tail := &logTail{}
		cfg := &config.Config{MCP: config.MCP{Transcripts: transcripts}}
		slog.New(slog.NewTextHandler(tail, tailOptions(cfg))).Info("tool call", "tool", "note", "arguments", "my diary")
		if got := tail.Text(); strings.Contains(got, "diary") != transcripts || !strings.Contains(got, "tool=note") {
			t.Errorf("transcripts %v: %s", transcripts, got)
		}
	}
}

// TestOutwardBanner: a person reads what to paste into a client; what is not a
// terminal is told where the token is instead.
func TestOutwardBanner(t *testing.T) {
	var lc net.ListenConfig
	all, err := lc.Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	port := strconv.Itoa(all.Addr().(*net.TCPAddr).Port)
	shown := func(c *config.Config, token string) string {
		var out strings.Builder
		outwardBanner(&out, c, []net.Listener{all}, "data/admin-token", token)
		return out.String()
	}
	snippet := func(text string) (url, authorization string) {
		t.Helper()
		for line := range strings.Lines(text) {
			var client struct {
				MCPServers map[string]struct {
					URL     string
					Headers map[string]string
				}
			}
			if json.Unmarshal([]byte(line), &client) == nil {
				return client.MCPServers["xiaozhi"].URL, client.MCPServers["xiaozhi"].Headers["Authorization"]
			}
		}
		t.Fatalf("nothing to paste: %s", text)
		return "", ""
	}
	c := config.Default()
	got := shown(c, "0wner")
	if url, bearer := snippet(got); url != "http://127.0.0.1:"+port+"/api/mcp/jsonrpc" || bearer != "Bearer 0wner" || strings.Contains(got, "admin-token") {
		t.Errorf("on a terminal: %s", got)
	}
	if strings.Count(got, "http://") != len(reachable(all.Addr()))+1 {
		t.Errorf("addresses: %s", got)
	}
	c.MCP.Tokens = []config.Token{{Name: "a", Token: "s3cret"}}
	got = shown(c, "")
	if _, bearer := snippet(got); bearer != "Bearer TOKEN" || strings.Contains(got, "s3cret") || !strings.Contains(got, "TOKEN: what data/admin-token holds") {
		t.Errorf("on no terminal: %s", got)
	}
	c.MCP.Enabled = false
	if got := shown(c, "0wner"); got != "" {
		t.Errorf("switched off: %s", got)
	}
}
