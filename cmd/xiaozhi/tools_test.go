package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"xiaozhi/internal/admintoken"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/gateway/offer"
)

// runTools runs the subcommand against a server and gives its exit code and
// what it printed.
func runTools(t *testing.T, server string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = tools(t.Context(), append([]string{"--server", server}, args...), strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// fakeAPI is a server with so many devices.
func fakeAPI(t *testing.T, devices int) (url string, called *[]string) {
	t.Helper()
	called = new([]string)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux.HandleFunc("GET /api/devices", func(w http.ResponseWriter, _ *http.Request) {
		list := []offer.Device{{ID: "aa:bb", Name: "kitchen"}, {ID: "cc:dd"}}[:devices]
		answer(w, map[string]any{"devices": list})
	})
	mux.HandleFunc("GET /api/devices/{id}/tools", func(w http.ResponseWriter, r *http.Request) {
		answer(w, gateway.ToolList{Device: r.PathValue("id"), Tools: []gateway.ToolView{
			{Name: "self.lamp.turn_on", LLMName: "self_lamp_turn_on", Source: "device", Kind: "control", Why: "its name begins with turn", Description: "Turns it on.\nReally.", Consent: true},
			{Name: "dig", LLMName: "dig", Source: "external:x", Kind: "query", Why: "readOnlyHint", Job: true},
		}})
	})
	mux.HandleFunc("POST /api/devices/{id}/tools/call", func(w http.ResponseWriter, r *http.Request) {
		var req gateway.CallRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		*called = append(*called, r.PathValue("id")+" "+req.Name+" "+string(req.Arguments)+" "+r.Header.Get("Authorization"))
		switch req.Name {
		case "broken":
			answer(w, gateway.CallResult{Name: req.Name, Action: "error", Result: "no light", IsError: true})
		case "say":
			answer(w, gateway.CallResult{Name: req.Name, Action: "response", Say: "It is lit.", Took: 12})
		case "text":
			answer(w, gateway.CallResult{Name: req.Name, Action: "response", Result: "lit", Say: "It is lit.", Took: 12})
		default:
			answer(w, gateway.CallResult{Name: req.Name, Action: "req_llm", Result: map[string]int{"volume": 50}, Took: 12})
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, called
}

func TestToolsList(t *testing.T) {
	one, _ := fakeAPI(t, 1)
	code, out, _ := runTools(t, one)
	if code != 0 {
		t.Error("exit code", code)
	}
	inOrder(t, out, "aa:bb: 2 tools", "self.lamp.turn_on (self_lamp_turn_on)", "device, control: its name begins with turn", "needs a yes", "Turns it on.\n", "\ndig\n", "external:x, query: readOnlyHint, a job")
	if strings.Contains(out, "Really") {
		t.Errorf("more than the first line: %s", out)
	}
	if code, out, _ = runTools(t, one, "--json", "xx"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("--json: %d %s", code, out)
	}
	none, _ := fakeAPI(t, 0)
	if code, _, why := runTools(t, none); code != 1 || !strings.Contains(why, "no device is connected / 没有设备连接") {
		t.Errorf("no device: %d %s", code, why)
	}
	two, _ := fakeAPI(t, 2)
	if code, _, why := runTools(t, two); code != 1 || !strings.Contains(why, "which device?") || !strings.Contains(why, "aa:bb kitchen") {
		t.Errorf("two devices: %d %s", code, why)
	}
	if code, out, _ = runTools(t, two, "cc:dd"); code != 0 || !strings.HasPrefix(out, "cc:dd") {
		t.Errorf("the second: %d %s", code, out)
	}
}

func TestToolsCall(t *testing.T) {
	t.Setenv("XIAOZHI_MCP_TOKEN", "s3cret")
	one, called := fakeAPI(t, 1)
	for _, c := range []struct {
		args        []string
		code        int
		out, err    string
		wantsCalled string
	}{
		{[]string{"call", "-", "self.volume", `{"a":1}`}, 0, "{\n  \"volume\": 50\n}\n(req_llm, 12 ms)\n", "", `aa:bb self.volume {"a":1} Bearer s3cret`},
		{[]string{"call", "aa:bb", "text"}, 0, "lit\nsays / 会说: It is lit.\n(response, 12 ms)\n", "", `aa:bb text {} Bearer s3cret`},
		{[]string{"call", "aa:bb", "say"}, 0, "says / 会说: It is lit.\n(response, 12 ms)\n", "", `aa:bb say {} Bearer s3cret`},
		{[]string{"call", "-", "broken"}, 1, "", "xiaozhi tools: broken: no light\n", `aa:bb broken {} Bearer s3cret`},
		{[]string{"call", "-", "text", "{"}, 1, "", "xiaozhi tools: the arguments are not JSON / 参数不是 JSON: {\n", ""},
		{[]string{"call", "-"}, 2, "", "xiaozhi tools: call needs DEVICE TOOL [ARGUMENTS] / 参数不对\n", ""},
		{[]string{"a", "b"}, 2, "", "xiaozhi tools: unknown argument \"b\" / 多余的参数 \"b\"\n", ""},
	} {
		*called = nil
		code, out, why := runTools(t, one, c.args...)
		if code != c.code || out != c.out || why != c.err || strings.Join(*called, ",") != c.wantsCalled {
			t.Errorf("%q: exit %d, out %q, err %q, called %q", c.args, code, out, why, *called)
		}
	}
}

func TestToolsWithoutServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	if code, _, why := runTools(t, server.URL, "x"); code != 1 || !strings.Contains(why, "404 Not Found") {
		t.Errorf("another server: %d %s", code, why)
	}
	server.Close()
	if code, _, why := runTools(t, server.URL); code != 1 || !strings.Contains(why, "does the server run? / 服务没有回应") {
		t.Errorf("no server: %d %s", code, why)
	}
	if code, _, why := runTools(t, server.URL, "--help"); code != 0 || !strings.Contains(why, "usage: xiaozhi tools") {
		t.Errorf("help: %d %s", code, why)
	}
}

// The admin token of ./data is shown to this machine only, that of a folder that was
// named to every server, and one that others can read to none.
func TestToolsAdminToken(t *testing.T) {
	t.Setenv("XIAOZHI_MCP_TOKEN", "")
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	token, err := admintoken.Ensure("data")
	if err != nil {
		t.Fatal(err)
	}
	one, called := fakeAPI(t, 1)
	if code, _, why := runTools(t, one, "call", "aa:bb", "text"); code != 0 || len(*called) != 1 || !strings.HasSuffix((*called)[0], "Bearer "+token) {
		t.Errorf("this machine: %d %s, %q", code, why, *called)
	}
	for _, c := range []struct {
		server, data string
		named, want  bool
	}{
		{"http://127.0.0.1:8000", "data", false, true},
		{"http://localhost", "data", false, true},
		{"http://[::1]:8000", "data", false, true},
		{"http://nas.lan:8000", "data", false, false},
		{"http://127.0.0.1.evil.example", "data", false, false},
		{"http://localhost@evil.example", "data", false, false},
		{"http://nas.lan:8000", "data", true, true},
		{"http://127.0.0.1:8000", "none", false, false},
	} {
		client := toolsClient{server: c.server, data: c.data, named: c.named}
		if err := client.findToken(); err != nil || (client.token == token) != c.want || client.token != "" && !c.want {
			t.Errorf("%+v: found %v, %v", c, client.token != "", err)
		}
	}
	if code, _, why := runTools(t, one, "--data", "none"); code != 1 || !strings.Contains(why, "none") {
		t.Errorf("a folder without one: %d %s", code, why)
	}
	if err := os.Chmod(admintoken.Path("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	*called = nil
	if code, _, why := runTools(t, one, "call", "aa:bb", "text"); code != 1 || len(*called) != 0 || !strings.Contains(why, "chmod 600 data/admin-token") {
		t.Errorf("open to others: %d %s, %q", code, why, *called)
	}
}
