package tools

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/store"
)

// client asks the routes for programs as somebody, past the guard.
type client struct {
	t   *testing.T
	mux *http.ServeMux
	who account.Person
}

func program(t *testing.T, s *fakeSource, who account.Person) *client {
	t.Helper()
	mux := http.NewServeMux()
	for _, route := range NewDesk(s).Programs(access.New(access.Options{Log: slog.New(slog.DiscardHandler)})) {
		mux.Handle(route.Pattern, route.Handler)
	}
	return &client{t, mux, who}
}

// want asks, and compares status and answer, of which each text must be a part.
func (c *client) want(pattern, body string, status int, texts ...string) {
	c.t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	w := httptest.NewRecorder()
	c.mux.ServeHTTP(w, access.As(httptest.NewRequest(method, path, strings.NewReader(body)), c.who))
	if w.Code != status || !json.Valid(w.Body.Bytes()) {
		c.t.Errorf("%s: %d %s, want %d", pattern, w.Code, w.Body, status)
	}
	for _, text := range texts {
		if !strings.Contains(w.Body.String(), text) {
			c.t.Errorf("%s: no %s in %s", pattern, text, w.Body)
		}
	}
}

// TestPrograms: programs list tools and call them by the rules of the pages.
func TestPrograms(t *testing.T) {
	s := house()
	wipe, broken := listed("external:home", "wipe", ""), listed("external:home", "broken", "{")
	wipe.Asks, wipe.Consent = "destructiveHint", true
	s.here = append(s.here, wipe, broken)
	s.answer = mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: []any{"done", mcp.Image{MIMEType: "image/png", Data: []byte("no picture")}}}
	c := program(t, s, olga)
	c.want("GET /api/v1/tools", "", 200, `"name":"self.lamp.set"`, `"hidden":"deny: self.shell.*"`, `"asks":"destructiveHint"`, `"why":"its name begins with set"`)
	c.want("GET /api/v1/tools?source=iot&device=m2", "", 200, `"name":"Fan.on"`)
	c.want("GET /api/v1/tools?device=m9", "", 404, "account/no-device")
	lamp, denied := idOf(s.tools["m1"][1].Tool), idOf(s.tools["m1"][2].Tool)
	c.want("POST /api/v1/devices/m1/tools/"+lamp+"/call", `{"arguments":{"on":true}}`, 200, `"ok":true`, `"text":"done"`, `"pictures":1`)
	c.want("POST /api/v1/devices/m1/tools/"+lamp+"/call", "", 200)
	c.want("POST /api/v1/devices/m1/tools/"+lamp+"/call", `{"argument":{}}`, 400, "api/body")
	c.want("POST /api/v1/devices/m1/tools/nothing/call", "", 404, "api/no-tool")
	c.want("POST /api/v1/devices/m1/tools/"+denied+"/call", "", 409, "api/tool-not-offered")
	c.want("POST /api/v1/devices/m2/tools/"+idOf(s.tools["m2"][1].Tool)+"/call", "", 409, "app/device-over")
	c.want("POST /api/v1/tools/"+idOf(wipe.Tool)+"/call", "{}", 409, "api/tool-unsure")
	c.want("POST /api/v1/tools/"+idOf(wipe.Tool)+"/call", `{"sure":true}`, 200)
	if len(s.called) != 3 || s.called[0].Arguments != `{"on":true}` || s.called[0].Name != "self_lamp_set" || strings.Join(s.on, " ") != "m1 m1 " || !s.sure[0] {
		t.Errorf("%+v on %q, %v", s.called, s.on, s.sure)
	}
	s.answer, s.invalid = mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "x"}, "argument"
	c.want("POST /api/v1/devices/m1/tools/"+lamp+"/call", "", 400, "api/tool-invalid")
	s.invalid = ""
	c.want("POST /api/v1/devices/m1/tools/"+lamp+"/call", "", 200, `"ok":false`)
	for range access.Burst {
		s.called = nil
		c.mux.ServeHTTP(httptest.NewRecorder(), access.As(httptest.NewRequest("POST", "/api/v1/devices/m1/tools/"+lamp+"/call", nil), olga))
	}
	c.want("POST /api/v1/devices/m1/tools/"+lamp+"/call", "", 429, "account/too-often")
	c.who = anna
	c.want("GET /api/v1/tools?device=m2", "", 404, "account/no-device")
}

// TestProgramsServers: so do they look at servers of tools, and at calls.
func TestProgramsServers(t *testing.T) {
	s := house()
	s.servers = []external.Status{{Name: "home", Phase: external.Connected, Listed: 2, Tools: 1, From: external.InFile}, {Name: "dead", Phase: external.Waiting, Trouble: external.Exited, Error: "exit 3", Lines: []string{"no folder"}}}
	s.calls = store.CallList{Calls: []store.Call{{ID: "1", At: time.UnixMilli(1700000000000), Name: "lamp", DeviceID: "m1", Took: time.Second}}, Next: store.Cursor{At: time.UnixMilli(1700000000000), ID: "1"}}
	c := program(t, s, olga)
	c.want("GET /api/v1/tools/servers", "", 200, `"trouble":"exited"`, `"lines":["no folder"]`, `"listed":2`)
	c.want("POST /api/v1/tools/servers/home/test", "", 200, `"ok":true`, `"tools":2`, `"took_ms":12`)
	s.tested = errTestTime
	c.want("POST /api/v1/tools/servers/dead/test", "", 200, `"ok":false`, "no answer within 10 s")
	s.tested = nil
	c.want("POST /api/v1/tools/servers/none/test", "", 404, "api/no-tool-server")
	c.want("POST /api/v1/tools/servers/home/restart", "", 200)
	c.want("POST /api/v1/tools/servers/none/restart", "", 404, "api/no-tool-server")
	c.want("GET /api/v1/tools/calls?device=M1&source=external&failed=1", "", 200, `"tool":"lamp"`, `"took_ms":1000`, `"before":"1700000000000.1"`)
	if want := (store.CallFilter{Device: "m1", Source: "external:", Failed: true}); s.asked != want {
		t.Errorf("asked for %+v", s.asked)
	}
	c.want("GET /api/v1/tools/calls?before=x", "", 400, "account/page-bad")
	c.who = anna
	c.want("GET /api/v1/tools/calls", "", 200)
	if s.asked.Owner != "a" {
		t.Errorf("a member asked for %+v", s.asked)
	}
}
