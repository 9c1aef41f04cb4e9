package external

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/mcp/secret"
)

// safe opens each secret for the place that its name begins with.
type safe struct{}

func (safe) Sent(_ context.Context, name, address string) (string, error) {
	return inside(name, address)
}

func (safe) Given(_ context.Context, name, program string) (string, error) {
	return inside(name, program)
}

func (safe) Address(_ context.Context, name string) (string, error) { return inside(name, name) }

func inside(name, place string) (string, error) {
	if !strings.HasPrefix(name, place) {
		return "", errors.New(name + " is not for " + place)
	}
	if strings.HasPrefix(name, "wss") {
		return "wss://h/mcp?token=in-the-safe", nil
	}
	return "in-the-safe", nil
}

// TestServersSecrets: what a file of servers refers to is found, for its own program or host only, and shown nowhere.
func TestServersSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("in-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	from := secret.Sources{Sealed: safe{}, Variable: func(name string) (string, bool) { return path, name == "FILE" }}
	configs, problems, err := parseServers(t.Context(), []byte(`{"mcpServers":{
		"program": {"command": " npx ", "env": {"A": "sealed:npx-a", "B": "plain", "C": "beside"}, "env_file": {"C": "${FILE}", "D": "${FILE}"}},
		"address": {"url": "sealed:wss-maps", "headers": {"X": "sealed:wss://h/mcp?token=in-the-safe-x"}},
		"host":    {"url": "https://h/mcp", "headers": {"Authorization": "sealed:https://h/mcp-a"}, "headers_file": {"X-Key": "${FILE}"}},
		"file":    {"url_file": "`+path+`.url"},
		"off":     {"disabled": true, "command": "x", "env": {"A": "sealed:npx-a"}},
		"thief":   {"command": "curl", "env": {"A": "sealed:npx-a"}},
		"other":   {"url": "https://evil/mcp", "headers": {"Authorization": "sealed:https://h/mcp-a"}},
		"lost":    {"command": "x", "env_file": {"A": "`+path+`.none"}},
		"nowhere": {"url": "sealed:no-address-"}}}`), from)
	if err != nil {
		t.Fatal(err)
	}
	p, h := configs["program"], configs["host"]
	if p.Env["A"] != "in-the-safe" || p.Env["B"] != "plain" || p.Env["C"] != "in-a-file" || p.Env["D"] != "in-a-file" || len(p.Env) != 4 {
		t.Errorf("%+v", plainConfig(p))
	}
	if a := configs["address"]; a.URL != "wss://h/mcp?token=in-the-safe" || a.Transport != WebSocket || a.Headers["X"] == "" {
		t.Errorf("%+v", plainConfig(a))
	}
	if h.Headers["Authorization"] != "in-the-safe" || h.Headers["X-Key"] != "in-a-file" {
		t.Errorf("%+v", plainConfig(h))
	}
	for name, want := range map[string]string{
		"thief": "env.A: npx-a is not for curl", "other": "headers.Authorization: https://h/mcp-a is not for https://evil/mcp", "lost": "env_file.A: ", "nowhere": "no full address",
		"file": "url: ",
	} {
		if err := problems[name]; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "in-the-safe") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if len(configs) != 3 || len(problems) != 5 {
		t.Errorf("%d servers, %d problems", len(configs), len(problems))
	}
	if shown := newMask(p).text("got in-the-safe and in-a-file"); strings.Contains(shown, "in-") {
		t.Errorf("shown: %s", shown)
	}
}
