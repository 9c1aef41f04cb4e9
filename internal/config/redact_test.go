package config

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRedacted: no secret, and nothing that may hold one, is shown.
func TestRedacted(t *testing.T) {
	c := mustLoadText(t, `
auth: {enabled: true, token: s3cret1-of-all-devices}
providers: {x: {type: openai, base_url: "https://u:s3cret2@h/v1?key=s3cret3", api_key: s3cret4, headers: {K: s3cret5}, extra: {k: s3cret6}}}
tools:
  weather: {url: "https://h/{city}?appid=s3cret7"}
  external: {mcpServers: {m: {command: c, args: ["--key=s3cret8"], env: {K: s3cret9}}}}
  offer: [{url: "wss://h/?token=s3cret10"}]
  endpoint: {enabled: true, tokens: [{token: s3cret11-of-bridge}]}
mcp: {tokens: [{name: n, token: s3cret12-of-laptop}]}
`)
	data := c.Redacted()
	if !json.Valid(data) || strings.Contains(string(data), "s3cret") {
		t.Errorf("shown: %s", data)
	}
	all := strings.Join(c.Secrets(), "\n")
	for _, secret := range []string{"s3cret1-of-all-devices", "s3cret4", "--key=s3cret8", "s3cret12-of-laptop", "s3cret11-of-bridge"} {
		if !strings.Contains(all, secret) {
			t.Errorf("%s is no secret in %q", secret, all)
		}
	}
	for _, want := range []string{`"api_key":"***"`, `"base_url":"https://h/v1"`, `"timezone":"Asia/Shanghai"`, `"idle_close":"1m40s"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in %s", want, data)
		}
	}
}
