package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/lockout"
	"xiaozhi/mcp/gateway/catalog"
)

const bedroomID = "24:6f:28:aa:10:03"

// initialize opens a session and returns its id.
func (r *rig) initialize(path string, header ...string) string {
	r.t.Helper()
	a := r.rpc(path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, header...)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || id == "" {
		r.t.Fatalf("initialize: %d %s", a.status, a.body)
	}
	return id
}

// TestRESTViews: ?stream= is a view of everything that REST has.
func TestRESTViews(t *testing.T) {
	r := newRig(t, nil)
	for path, hidden := range map[string]string{
		"/api/mcp/tools": "system.info", "/api/mcp/resources": "xiaozhi://config", "/api/mcp/prompts": "default",
	} {
		if a := r.do("GET", path+"?stream=time", ""); a.status != 200 || strings.Contains(a.body, `"`+hidden+`"`) {
			t.Errorf("%s shows what is hidden: %d %s", path, a.status, a.body)
		}
		if a := r.do("GET", path, ""); a.status != 200 || !strings.Contains(a.body, `"`+hidden+`"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		if a := r.do("GET", path+"?stream=nobody", ""); a.status != 404 || field(t, a.body, "error", "code") != codeNoStream {
			t.Errorf("%s of an unknown stream: %d %s", path, a.status, a.body)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/mcp/tools/system.info", ""},
		{"GET", "/api/mcp/resources/xiaozhi%3A%2F%2Fconfig", ""},
		{"POST", "/api/mcp/prompts/default", "{}"},
		{"POST", "/api/mcp/tools/call", `{"name":"system.info"}`},
	} {
		if a := r.do(c.method, c.path+"?stream=time", c.body); a.status != 404 {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
		if a := r.do(c.method, c.path, c.body); a.status != 200 {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
	}
}

// event is the JSON of an answer, or of the first event of one of server-sent events.
func event(t *testing.T, body string) string {
	t.Helper()
	if strings.HasPrefix(body, "{") {
		return body
	}
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.HasPrefix(data, "{") {
			return strings.TrimSpace(data)
		}
	}
	t.Fatalf("no event in %s", body)
	return ""
}

// TestViewIsolation: through the view of one stream nothing else can be seen or
// called, in whatever way it is asked; a session stays in the view it was opened on.
func TestViewIsolation(t *testing.T) {
	r := newRig(t, nil)
	view := "/api/mcp/jsonrpc/" + kitchenStream
	for _, name := range []string{"system.info", "time.now", "device.abort", "talk.exit", kitchenStream + ".nope"} {
		if a := r.call(view, name, "{}"); field(t, a.body, "error", "code") != -32601.0 {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	if a := r.call(view, "self.get_device_status", "{}"); field(t, a.body, "result", "isError") != false {
		t.Errorf("by its bare name: %s", a.body)
	}
	if a := r.call("/api/mcp/jsonrpc", "self.get_device_status", "{}"); field(t, a.body, "error", "code") != -32601.0 {
		t.Errorf("by its bare name among all: %s", a.body)
	}
	for _, uri := range []string{"xiaozhi://config", "xiaozhi://log", "xiaozhi://devices"} {
		a := r.rpc(view, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+uri+`"}}`)
		if field(t, a.body, "error", "code") != -32602.0 {
			t.Errorf("%s: %s", uri, a.body)
		}
	}
	if a := r.rpc(view, `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`); len(field(t, a.body, "result", "prompts").([]any)) != 0 {
		t.Errorf("prompts: %s", a.body)
	}
	id := r.initialize("/api/mcp/jsonrpc")
	a := r.rpc(view, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id: "+id)
	if a.status != 404 || field(t, a.body, "error", "code") != -32001.0 {
		t.Errorf("a session of all in a view: %d %s", a.status, a.body)
	}
	id = r.initialize(view)
	for _, path := range []string{"/api/mcp/jsonrpc", "/api/mcp/jsonrpc?stream=system", "/api/mcp/jsonrpc/system"} {
		if a := r.call(path, "system.info", "{}", "Mcp-Session-Id: "+id); a.status != 404 {
			t.Errorf("a session of a view at %s: %d %s", path, a.status, a.body)
		}
	}
	a = r.call(view, "system.info", "{}", "Mcp-Session-Id: "+id, "Mcp-Protocol-Version: 2025-06-18")
	if field(t, event(t, a.body), "error", "code") != -32602.0 {
		t.Errorf("in its own view: %d %s", a.status, a.body)
	}
	if a := r.do(http.MethodDelete, view, "", "Mcp-Session-Id: "+id); a.status != 204 {
		t.Errorf("the end of a session: %d %s", a.status, a.body)
	}
	if a := r.call(view, "self.get_device_status", "{}", "Mcp-Session-Id: "+id); a.status != 404 {
		t.Errorf("after its end: %d %s", a.status, a.body)
	}
	conn := r.dialSocket("?stream="+kitchenStream, nil)
	if got := ask(t, conn, `{"type":"call_tool","name":"system.info"}`); field(t, got, "error", "code") != "TOOL_NOT_FOUND" {
		t.Errorf("by a socket: %s", got)
	}
	if got := ask(t, conn, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"system.info"}}`); field(t, got, "error", "code") != -32601.0 {
		t.Errorf("by a socket: %s", got)
	}
}

// tokened are tokens with different rights.
func tokened(o *Options) {
	o.Access.Tokens = []catalog.Token{
		{Name: "all", Token: "t-all"},
		{Name: "time", Token: "t-time", Streams: []string{"time"}},
		{Name: "devices", Token: "t-devices", Streams: []string{"device-*"}},
		{Name: "bedroom", Token: "t-bedroom", Streams: []string{"timer", "device", "prompts", "device-246f28aa1003"}},
		{Name: "reader", Token: "t-reader", ReadOnly: true},
		{Name: "slow", Token: "t-slow", Rate: 1},
	}
}

// TestTokenStreams: a token sees and calls its streams only, everywhere.
func TestTokenStreams(t *testing.T) {
	r := newRig(t, tokened)
	bearer := func(token string) string { return "Authorization: Bearer " + token }
	if err := r.Registry().Add(catalog.Tool{Name: "bare", Run: sum}); err != nil {
		t.Fatal(err)
	}
	all := names(t, field(t, r.do("GET", "/api/mcp/tools", "", bearer("t-all")).body, "tools"))
	got := names(t, field(t, r.do("GET", "/api/mcp/tools", "", bearer("t-time")).body, "tools"))
	if !slices.Contains(all, "bare") || slices.Contains(got, "bare") || len(got) != 4 {
		t.Errorf("all %d tools, time: %v", len(all), got)
	}
	if a := r.do("GET", "/api/mcp/tools/streams", "", bearer("t-time")); field(t, a.body, "count") != 1.0 {
		t.Errorf("streams: %s", a.body)
	}
	if a := r.do("GET", "/api/mcp/health", "", bearer("t-time")); len(field(t, a.body, "streams").([]any)) != 1 {
		t.Errorf("health: %s", a.body)
	}
	for _, a := range []answer{
		r.call("/api/mcp/jsonrpc", "system.info", "{}", bearer("t-time")), r.call("/api/mcp/jsonrpc", "bare", "{}", bearer("t-time")),
		r.call("/api/mcp/jsonrpc", kitchenStream+".self.get_device_status", "{}", bearer("t-time")),
	} {
		if field(t, a.body, "error", "code") != -32601.0 {
			t.Errorf("outside its streams: %s", a.body)
		}
	}
	for _, path := range []string{"/api/mcp/jsonrpc/system", "/api/mcp/jsonrpc?stream=system", "/api/mcp/jsonrpc/time%2f..%2fsystem", "/api/mcp/jsonrpc/*"} {
		if a := r.rpc(path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, bearer("t-time")); a.status != 404 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := r.do("GET", "/api/mcp/resources", "", bearer("t-devices")); strings.Contains(a.body, "config") || !strings.Contains(a.body, "246f28aa1002") {
		t.Errorf("resources: %s", a.body)
	}
	id := r.initialize("/api/mcp/jsonrpc", bearer("t-all"))
	if a := r.call("/api/mcp/jsonrpc", "time.now", "{}", bearer("t-time"), "Mcp-Session-Id: "+id); a.status != 404 {
		t.Errorf("somebody else's session: %d %s", a.status, a.body)
	}
}

// TestReadOnly: a read-only token looks, and calls only what is ours and changes nothing.
func TestReadOnly(t *testing.T) {
	r := newRig(t, tokened)
	const reader = "Authorization: Bearer t-reader"
	for name, may := range map[string]bool{
		"system.info": true, "util.uuid": true, "time.get_current_time": true, "timer.set_timer": false, "device.set_volume": false,
		kitchenStream + ".self.audio_speaker.set_volume": false, kitchenStream + ".self.get_device_status": false,
	} {
		a := r.call("/api/mcp/jsonrpc", name, `{"seconds":5,"volume":5}`, reader)
		if may != (field(t, a.body, "error") == nil) {
			t.Errorf("%s: %s", name, a.body)
		}
		if !may && (field(t, a.body, "error", "code") != -32000.0 || !strings.Contains(a.body, "只读")) {
			t.Errorf("%s: %s", name, a.body)
		}
		if a := r.do("POST", "/api/mcp/tools/call", `{"name":"`+name+`"}`, reader); (a.status == 403) == may {
			t.Errorf("%s by REST: %d %s", name, a.status, a.body)
		}
	}
	if a := r.do("GET", "/api/mcp/resources/xiaozhi://config", "", reader); a.status != 200 {
		t.Errorf("it may look: %d %s", a.status, a.body)
	}
}

// TestAuthentication: a client without a token, or with a wrong one, gets 401 and
// learns how; health tells it nothing but that it is there; nothing of a token is logged.
func TestAuthentication(t *testing.T) {
	r := newRig(t, tokened)
	for _, path := range []string{"/api/mcp/jsonrpc", "/api/mcp/tools", "/api/mcp/connect", "/mcp/ws", "/api/mcp/jsonrpc?token=t-all", "/api/mcp/tools?token=t-all"} {
		method := "GET"
		if strings.Contains(path, "jsonrpc") {
			method = "POST"
		}
		a := r.do(method, path, "")
		if a.status != 401 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") || !json.Valid([]byte(a.body)) {
			t.Errorf("%s: %d %v %s", path, a.status, a.header, a.body)
		}
	}
	if a := r.do("GET", "/api/mcp/health", ""); a.status != 200 || len(field(t, a.body, "streams").([]any)) != 0 || field(t, a.body, "toolsCount") != 0.0 {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	conn := r.dialSocket("?token=t-all", nil)
	if got := ask(t, conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); field(t, got, "id") != 1.0 {
		t.Errorf("a token in the address of a socket: %s", got)
	}
	if a := r.do("GET", "/api/mcp/tools", "", "Authorization: Bearer t-slow"); a.status != 200 {
		t.Errorf("slow: %d", a.status)
	}
	limited := false
	for range 5 {
		a := r.do("GET", "/api/mcp/tools", "", "Authorization: Bearer t-slow")
		limited = limited || a.status == 429 && a.header.Get("Retry-After") != ""
	}
	if !limited {
		t.Error("the rate of a token is not held")
	}
	if log := r.log.String(); strings.Contains(log, "t-all") || strings.Contains(log, "t-slow") || !strings.Contains(log, "request refused") {
		t.Errorf("log: %s", log)
	}
}

// TestGuessing: an address that shows wrong tokens again and again is not
// listened to for a while.
func TestGuessing(t *testing.T) {
	r := newRig(t, tokened)
	for i := range lockout.MaxGuesses {
		if a := r.do("GET", "/api/mcp/tools", "", "Authorization: Bearer wrong"); a.status != 401 {
			t.Fatalf("guess %d: %d", i, a.status)
		}
	}
	if a := r.do("GET", "/api/mcp/tools", "", "Authorization: Bearer wrong"); a.status != 429 {
		t.Errorf("after %d guesses: %d", lockout.MaxGuesses, a.status)
	}
}

// TestGuessingBehindAProxy: a client that guesses does not lock out those that came
// from the same address with a right token before; a token that was not used from
// there is not tried meanwhile, right or wrong.
func TestGuessingBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{}
		tokened(&o)
		g := New(o)
		defer g.Close()
		get := func(remote, token string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/mcp/tools", nil)
			r.RemoteAddr = remote
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			return w.Code
		}
		if code := get("10.0.0.1:1", "t-all"); code != 200 {
			t.Fatal(code)
		}
		for range lockout.MaxGuesses {
			get("10.0.0.1:2", "wrong")
			get("[2001:db8::1]:1", "wrong")
		}
		for _, c := range []struct {
			remote, token string
			code          int
		}{
			{"10.0.0.1:3", "wrong", 429},
			{"10.0.0.1:3", "t-time", 429},
			{"10.0.0.1:3", "t-all", 200},
			{"10.0.0.2:1", "t-time", 200},
			{"[2001:db8::2]:1", "wrong", 429},
			{"[2001:db8:0:1::1]:1", "wrong", 401},
		} {
			if code := get(c.remote, c.token); code != c.code {
				t.Errorf("%s %s: %d, want %d", c.remote, c.token, code, c.code)
			}
		}
		time.Sleep(lockout.Window + time.Second)
		if code := get("10.0.0.1:3", "t-time"); code != 200 {
			t.Errorf("later: %d", code)
		}
	})
}

// TestHostsOfTokens: with a token the names of the config are served too, and no
// other that leads to this machine.
func TestHostsOfTokens(t *testing.T) {
	r := newRig(t, func(o *Options) {
		tokened(o)
		o.Access.Hosts = []string{"speaker.example.org"}
	})
	for host, status := range map[string]int{"speaker.example.org": 200, "Speaker.example.org:443": 200, "localhost": 200, "evil.example": 403} {
		if a := r.do("GET", "/api/mcp/tools", "", "Host: "+host, "Authorization: Bearer t-all"); a.status != status {
			t.Errorf("%s: %d %s", host, a.status, a.body)
		}
	}
}

// TestHostAndOrigin: a name that leads here, or a page of another origin, gets
// nothing, by any of the ways; those that the config names do.
func TestHostAndOrigin(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Access.Hosts, o.Access.Origins = []string{"speaker.example.org"}, []string{"https://inspector.example.org"}
	})
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		header string
		status int
	}{
		{"Host: evil.example", 403},
		{"Host: speaker.example.org", 200}, // a proxy's
		{"Host: localhost:1", 200},
		{"Origin: http://evil.example", 403},
		{"Origin: null", 403},
		{"Origin: https://inspector.example.org", 200},
		{"Origin: http://localhost:6274", 200},
		{"Host: LocalHost:1", 200},
	} {
		if a := r.rpc("/api/mcp/jsonrpc", ping, c.header); a.status != c.status || !json.Valid([]byte(a.body)) {
			t.Errorf("%s: %d %s", c.header, a.status, a.body)
		}
		if a := r.do("GET", "/api/mcp/tools", "", c.header); a.status != c.status {
			t.Errorf("%s by REST: %d %s", c.header, a.status, a.body)
		}
		if c.status == 200 {
			continue // a stream does not end
		}
		if a := r.do("GET", "/api/mcp/connect?legacy=1", "", c.header); a.status != c.status {
			t.Errorf("%s by SSE: %d", c.header, a.status)
		}
	}
	a := r.do("OPTIONS", "/api/mcp/jsonrpc", "", "Origin: https://inspector.example.org", "Access-Control-Request-Method: POST")
	if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "https://inspector.example.org" || !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "Mcp-Session-Id") {
		t.Errorf("preflight: %d %v", a.status, a.header)
	}
	a = r.do("OPTIONS", "/api/mcp/jsonrpc", "", "Origin: http://evil.example", "Access-Control-Request-Method: POST")
	if a.status != 403 || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of somebody else: %d %v", a.status, a.header)
	}
	if a := r.do("GET", "/api/mcp/health", "", "Host: evil.example"); a.status != 200 || field(t, a.body, "toolsCount") != 0.0 {
		t.Errorf("health for a foreign name: %d %s", a.status, a.body)
	}
}

// TestDisabled: a gateway that is switched off says so, everywhere.
func TestDisabled(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Disabled = true })
	if a := r.do("GET", "/api/mcp/health", ""); a.status != 503 || field(t, a.body, "status") != "disabled" {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	if a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); a.status != 503 || field(t, a.body, "error", "code") != -32000.0 {
		t.Errorf("jsonrpc: %d %s", a.status, a.body)
	}
	if a := r.do("GET", "/api/mcp/tools", ""); a.status != 503 || field(t, a.body, "error", "code") != "MCP_DISABLED" {
		t.Errorf("tools: %d %s", a.status, a.body)
	}
}

// TestMethods: what is not served says what is.
func TestMethods(t *testing.T) {
	r := newRig(t, nil)
	for _, c := range []struct{ method, path, allow string }{
		{"PUT", "/api/mcp/jsonrpc", "GET, POST, DELETE"},
		{"GET", "/api/mcp/jsonrpc", "POST"},
		{"DELETE", "/api/mcp/jsonrpc", "POST"},
		{"POST", "/api/mcp/tools", "GET"},
		{"GET", "/api/mcp/tools/call", "POST"},
		{"DELETE", "/api/mcp/connect", "GET, POST"},
		{"POST", "/api/mcp/health", "GET"},
		{"GET", "/api/mcp/prompts/default", "POST"},
		{"POST", "/api/mcp/resources", "GET"},
	} {
		if a := r.do(c.method, c.path, ""); a.status != 405 || a.header.Get("Allow") != c.allow || !json.Valid([]byte(a.body)) {
			t.Errorf("%s %s: %d, Allow %q: %s", c.method, c.path, a.status, a.header.Get("Allow"), a.body)
		}
	}
	for _, path := range []string{"/api/mcp", "/api/mcp/nope", "/api/mcp/tools/", "/api/mcp/tools/%zz"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = path
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // a client that does not send such a path
		}
		resp.Body.Close()
		if path != "/api/mcp/tools/" && resp.StatusCode != 404 && resp.StatusCode != 400 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if a := r.do("GET", "/mcp/ws", ""); a.status != 426 {
		t.Errorf("no WebSocket: %d %s", a.status, a.body)
	}
}

// TestTokenOfOneDevice: a token that names a device works on it and no other,
// also by the tools that take a device.
func TestTokenOfOneDevice(t *testing.T) {
	r := newRig(t, tokened)
	const bedroom = "Authorization: Bearer t-bedroom"
	if a := r.call("/api/mcp/jsonrpc", "timer.list_timers", `{"device_id":"kitchen"}`, bedroom); field(t, a.body, "error", "code") != -32602.0 || !strings.Contains(a.body, "kitchen") {
		t.Errorf("another device: %s", a.body)
	}
	if a := r.call("/api/mcp/jsonrpc", "timer.list_timers", `{}`, bedroom); field(t, a.body, "error", "code") != -32602.0 || strings.Contains(a.body, kitchenID) {
		t.Errorf("the only device, which is another: %s", a.body)
	}
	if a := r.do("GET", "/api/mcp/resources/xiaozhi://devices", "", bedroom); a.status != 200 || strings.Contains(a.body, kitchenID) {
		t.Errorf("devices: %d %s", a.status, a.body)
	}
	complete := func(ref, argument string) string {
		return r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":`+ref+`,"argument":{"name":"`+argument+`","value":""}}}`, bedroom).body
	}
	r.home.connect(bedroomID, "bedroom", nil)
	for argument, ref := range map[string]string{
		"id":          `{"type":"ref/resource","uri":"xiaozhi://devices/{id}/status"}`,
		"device_name": `{"type":"ref/prompt","name":"default"}`,
	} {
		if got := complete(ref, argument); strings.Contains(got, "246f28aa1002") || strings.Contains(got, "kitchen") || !strings.Contains(got, "246f28aa1003") && !strings.Contains(got, "bedroom") {
			t.Errorf("completion of %s: %s", argument, got)
		}
	}
	if a := r.call("/api/mcp/jsonrpc", "timer.list_timers", `{"device_id":"kitchen"}`, "Authorization: Bearer t-all"); field(t, a.body, "result", "isError") != false {
		t.Errorf("a token of all: %s", a.body)
	}
}
