package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"xiaozhi/mcp/gateway"
)

// hostileAPI is a server whose device has names that attack the terminal.
func hostileAPI(t *testing.T) *httptest.Server {
	t.Helper()
	const clear = "\x1b[2J\x1b]0;owned\a\r"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = gateway.ToolList{Device: "aa:bb", Tools: []gateway.ToolView{
			{Name: "a" + clear, LLMName: "a", Source: "external:" + clear, Kind: "query", Why: clear, Description: clear + "looks nice"},
			{Name: "bare", LLMName: "bare", Source: "local", Kind: "query", Why: "it says so"},
			{Name: "长", LLMName: "t_1", Source: "local", Kind: "control", Why: "it says so", Description: strings.Repeat("很长的说明", 50)},
		}}
		if r.Method == http.MethodPost {
			answer = gateway.CallResult{Name: "a", Action: "response", Result: "line one\nline two" + clear, Say: clear}
		}
		if r.URL.Path == "/api/devices/none/tools" {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<html>" + clear + strings.Repeat("x", 5000)))
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestToolsTerminalSafe: what devices and their makers write cannot steer the
// terminal of the person who looks, and long texts stay readable.
func TestToolsTerminalSafe(t *testing.T) {
	server := hostileAPI(t)
	steers := func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' })
	}
	_, out, _ := runTools(t, server.URL, "aa:bb")
	if steers(out) {
		t.Errorf("the list steers the terminal: %q", out)
	}
	inOrder(t, out, "looks nice", "\nbare\n  local, query: it says so\n\n长 (t_1)\n", "很长的说明", "…\n")
	for line := range strings.Lines(out) {
		if n := len([]rune(line)); n > 120 {
			t.Errorf("a line of %d signs", n)
		}
	}
	if _, out, _ = runTools(t, server.URL, "call", "aa:bb", "a"); steers(out) || !strings.HasPrefix(out, "line one\nline two") {
		t.Errorf("the result: %q", out)
	}
	code, _, why := runTools(t, server.URL, "none")
	if code != 1 || steers(why) || len(why) > 400 || !strings.Contains(why, "502 Bad Gateway") {
		t.Errorf("a page for people: %d %q", code, why)
	}
}

// TestToolsTyped: a server without its scheme, options in the wrong place, and
// arguments that are no object.
func TestToolsTyped(t *testing.T) {
	one, called := fakeAPI(t, 1)
	if code, out, why := runTools(t, strings.TrimPrefix(one, "http://")); code != 0 || !strings.HasPrefix(out, "aa:bb: 2 tools") {
		t.Errorf("without http://: %d %s %s", code, out, why)
	}
	if code, out, _ := runTools(t, one+"/"); code != 0 || !strings.HasPrefix(out, "aa:bb: 2 tools") {
		t.Errorf("with a slash: %d %s", code, out)
	}
	for _, args := range [][]string{{"aa:bb", "--json"}, {"call", "-", "text", "{}", "--json"}, {"call", "-", "text", "--json"}} {
		code, _, why := runTools(t, one, args...)
		if code != 2 || !strings.Contains(why, "--json must come before") || !strings.Contains(why, "--json 要写在其他参数前面") {
			t.Errorf("%q: %d %s", args, code, why)
		}
	}
	if len(*called) != 0 {
		t.Errorf("called %q", *called)
	}
	if code, out, _ := runTools(t, one, "call", "客厅/1", "text"); code != 0 || !strings.HasPrefix(out, "lit") || !strings.HasPrefix((*called)[0], "客厅/1 text {}") {
		t.Errorf("an id with a slash: %d %s %q", code, out, *called)
	}
	if code, out, _ := runTools(t, one, "--json", "call", "-", "broken"); code != 1 || !json.Valid([]byte(out)) {
		t.Errorf("a failure as JSON: %d %s", code, out)
	}
}

// TestToolsOfAnotherServer: an answer that is no xiaozhi's is said to be so.
func TestToolsOfAnotherServer(t *testing.T) {
	for name, body := range map[string]string{"a page": "<html>hello</html>", "a list": "[1]", "cut off": `{"devices":[{"id":"a"`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		code, out, why := runTools(t, server.URL)
		server.Close()
		if code != 1 || out != "" || !strings.Contains(why, "not that of a xiaozhi server / 不是 xiaozhi 服务的回应") {
			t.Errorf("%s: %d %q %q", name, code, out, why)
		}
	}
	if code, _, why := runTools(t, "http://[::bad"); code != 1 || !strings.Contains(why, "--server") {
		t.Errorf("no address: %d %s", code, why)
	}
}
