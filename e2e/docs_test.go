package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// block is one piece of code of a document.
var block = regexp.MustCompile("(?s)\n```(sh|python|json|yaml)\n(.*?)\n```\n")

// blocks are the pieces of code of a document, by kind.
func blocks(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", file))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1:])
	}
	return out
}

// TestDocsMCP runs what docs/mcp.md tells people to run, against a real server;
// the Chinese one says the same.
func TestDocsMCP(t *testing.T) {
	t.Parallel()
	all, chinese := blocks(t, "mcp.md"), blocks(t, "mcp.zh-CN.md")
	if len(all) != 7 || !slices.EqualFunc(all, chinese, slices.Equal) {
		t.Fatalf("%d blocks in English, %d in Chinese, or they differ", len(all), len(chinese))
	}
	lamp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/api/rooms/kitchen/lamp" || string(body) != `{"on": true}` {
			t.Errorf("the lamp was asked %s %s", r.URL, body)
		}
		_, _ = io.WriteString(w, `{"room":{"name":"kitchen","state":"bright"}}`)
	}))
	defer lamp.Close()
	ctx := limit(t)
	s := start(t, setup{config: strings.ReplaceAll(all[0][1], "${XIAOZHI_MCP_TOKEN}", "${NOT_SET:-t0ken-of-the-laptop}")})
	s.stop(t) // it takes the settings; what follows is with the owner's
	s = start(t, setup{})
	address := strings.TrimSuffix(s.ota, "/xiaozhi/ota/")
	path := "PATH=" + curlFolder(t) + string(os.PathListSeparator) + os.Getenv("PATH")
	ran := 0
	for _, b := range all[1:] {
		code := strings.ReplaceAll(b[1], "http://127.0.0.1:8000", address)
		program := map[string][]string{"sh": {"bash", "-euo", "pipefail", "-c"}, "python": {"python3", "-c"}}[b[0]]
		switch b[0] {
		case "json":
			if !json.Valid([]byte(code)) {
				t.Errorf("no JSON: %s", code)
			}
		case "yaml":
			code = strings.ReplaceAll(code, "http://192.168.1.5", lamp.URL)
			if err := os.WriteFile(filepath.Join(s.dir, "data", "tools", "lamp.yaml"), []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			for !strings.Contains(s.outward(ctx, t, "tools/list", "{}"), "home.lamp") {
				time.Sleep(50 * time.Millisecond) // real time: another process
			}
			if got := s.outwardCall(ctx, t, "home.lamp", `{"room":"kitchen","on":true}`); got != "kitchen: bright" {
				t.Errorf("the lamp: %s", got)
			}
		default:
			if _, err := exec.LookPath(program[0]); err != nil {
				t.Logf("%s is not here: its examples do not run", program[0])
				continue
			}
			cmd := exec.CommandContext(ctx, program[0], append(program[1:], code)...)
			cmd.Env, cmd.Dir = append(os.Environ(), path), s.dir
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "system.info") {
				t.Errorf("%v:\n%s\n%s", err, code, out)
			}
			ran++
		}
	}
	if ran == 0 {
		t.Error("no example ran")
	}
	t.Logf("%d examples ran", ran)
}
