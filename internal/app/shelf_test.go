package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/sealed"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/gateway/offer"
)

// TestSecretsOfFiles: files of servers and of tools get sealed secrets from the store, each for its program or host.
func TestSecretsOfFiles(t *testing.T) {
	keys := make(chan string, 1)
	lamp := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { keys <- r.Header.Get("X-Key") }))
	defer lamp.Close()
	data := t.TempDir()
	seal(t, config.Default(), data, map[string]string{"npx": sealed.Program + "npx", "maps": "maps.example.com", "lamp": lamp.URL, "url-tools": "tools.example.com"})
	a := without(t, data, func(c *config.Config) { c.MCP.AutoRegister = false })
	defer a.Close()
	if err := a.openStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := a.opener(a.stored).sources()
	file := writeFile(t, "mcp_servers.json", `{"mcpServers":{"a":{"command":"npx","env":{"K":"sealed:npx"}},"b":{"url":"https://maps.example.com/mcp","headers":{"K":"sealed:maps"}},
		"c":{"url":"sealed:url-tools"},"thief":{"url":"https://evil.example.com/mcp","headers":{"K":"sealed:maps"}},"plain":{"url":"http://maps.example.com/mcp","headers":{"K":"sealed:maps"}}}}`)
	configs, problems, err := external.CheckFile(t.Context(), file, from)
	if err != nil || configs["a"].Env["K"] != planted || configs["b"].Headers["K"] != planted || !strings.HasSuffix(configs["c"].URL, planted) || len(configs) != 3 {
		t.Errorf("%d servers, %v, %v", len(configs), problems, err)
	}
	for _, name := range []string{"thief", "plain"} {
		if err := problems[name]; err == nil || !strings.Contains(err.Error(), "was entered for maps.example.com") || strings.Contains(err.Error(), planted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	none := without(t, t.TempDir(), func(c *config.Config) { c.Store.Driver = "none" })
	if _, problems, _ := external.CheckFile(t.Context(), file, none.opener(nil).sources()); problems["a"] == nil || !strings.Contains(problems["a"].Error(), "store.driver is none") {
		t.Errorf("without a store: %v", problems)
	}

	tool := "name: home.lamp\nrequest: {url: '" + lamp.URL + "/', headers: {X-Key: 'sealed:lamp'}}\n"
	if err := makeDataDir(data); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "tools", "lamp.yaml"), []byte(tool), 0o600); err != nil {
		t.Fatal(err)
	}
	a.outward(nil, nil, nil, offer.NewFiles(filepath.Join(a.options.Data, "tools"), from, a.log))
	a.gateway.SetOwner(planted)
	a.gateway.Start(context.WithoutCancel(t.Context()))
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(5 * time.Millisecond) { // the folder is read by another goroutine
		r := httptest.NewRequest(http.MethodPost, "http://localhost/api/mcp/tools/call", strings.NewReader(`{"name":"home.lamp","arguments":{}}`))
		r.Header.Set("Authorization", "Bearer "+planted)
		r.Header.Set("Content-Type", "application/json")
		a.gateway.ServeHTTP(httptest.NewRecorder(), r)
		select {
		case key := <-keys:
			if key != planted {
				t.Errorf("the lamp got %q", key)
			}
			return
		default:
		}
	}
	t.Error("the lamp was not asked")
}
