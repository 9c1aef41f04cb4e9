package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/router"
)

// lamp is a source with a control and a query.
type lamp struct{ mcp.Source }

func (lamp) GetAvailableTools() []mcp.Tool {
	schema := json.RawMessage(`{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}`)
	return []mcp.Tool{
		{Name: "self.lamp.turn", Description: "Turns it\non", Schema: schema, Source: "device", Origin: mcp.Remote},
		{Name: "sing", Description: "Sings", Schema: json.RawMessage(`{"type":"object"}`), Source: "local", Origin: mcp.Local},
		{Name: "self.lamp.read", Description: "Reads", Schema: json.RawMessage(`{"type":"object"}`), Source: "device", Origin: mcp.Remote},
		{Name: "self.reboot", Description: "Restarts", Schema: json.RawMessage(`{"type":"object"}`), Source: "device", Origin: mcp.Remote, Annotations: mcp.Annotations{Audience: []string{"user"}}},
	}
}

func (lamp) CallTool(_ context.Context, name string, args map[string]any) (any, error) {
	if name == "sing" {
		return mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: mcp.ActionResponseCall{FuncName: "mcp_handler_sing", Args: "la"}}, nil
	}
	if name == "self.reboot" {
		return true, nil
	}
	if name == "self.lamp.read" {
		return nil, errors.New("the lamp is dark")
	}
	return map[string]any{"on": args["on"]}, nil
}

// house has one device.
type house struct{ box *router.Router }

func (h house) List() []offer.Device {
	return []offer.Device{{ID: "24:6f:28:aa:10:02", Name: "kitchen", SessionID: "s", Language: "zh", Since: time.Unix(0, 0).UTC(), Tools: 2}}
}

func (h house) Offers(id string) ([]router.Offer, bool) {
	return h.box.Offers(), id == "24:6f:28:aa:10:02"
}

func (h house) Survey(id string) ([]router.Listed, bool) {
	return h.box.Survey(), id == "24:6f:28:aa:10:02"
}

func (h house) Call(ctx context.Context, id string, call mcp.Call) (mcp.ActionResponse, string) {
	return callBox(ctx, h.box, id, call, func(c mcp.ActionResponseCall) mcp.ActionResponse {
		return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: strings.Join([]string{id, c.FuncName, c.Args.(string), call.Language}, " ")}
	})
}

func (h house) Calls(id string) []router.Record {
	if id != "24:6f:28:aa:10:02" {
		return nil
	}
	return []router.Record{{CallID: "c1", Tool: "self.lamp.turn", Outcome: "error", Late: true}}
}

// openAPI returns the API of devices without access control: everybody is this machine.
func openAPI(d offer.Devices) http.Handler {
	h := (&deviceAPI{devices: d, runner: catalog.NewRunner(router.Gate{}, func() *time.Location { return time.UTC }, slog.New(slog.DiscardHandler)), log: slog.New(slog.DiscardHandler)}).handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(catalog.WithCaller(r.Context(), catalog.Caller{Owner: true})))
	})
}

func TestDeviceAPI(t *testing.T) {
	box := router.New(router.Options{}, lamp{})
	t.Cleanup(box.Close)
	h := openAPI(house{box})
	const device = "/api/devices/24:6F:28:AA:10:02"
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want                     []string
	}{
		{"list", "GET", "/api/devices", "", 200, []string{`"id":"24:6f:28:aa:10:02"`, `"name":"kitchen"`, `"tools":2`}},
		{"tools", "GET", device + "/tools", "", 200, []string{
			`"name":"self.lamp.turn","llm_name":"self_lamp_turn","source":"device","origin":"remote","kind":"control","why":"its name begins with turn"`,
			`"kind":"query","why":"nothing says that it is a control"`, `"inputSchema":{"type":"object"}`,
			`"name":"self.reboot","llm_name":""`, `"timeout_ms":60000,"for_people":true`,
		}},
		{"tools of nobody", "GET", "/api/devices/x/tools", "", 404, []string{`no device \"x\" is connected`, "设备没有连接"}},
		{"calls", "GET", device + "/calls", "", 200, []string{`"call_id":"c1"`, `"late":true`}},
		{"calls of nobody", "GET", "/api/devices/x/calls", "", 200, []string{`"calls":[]`}},
		{"call", "POST", device + "/tools/call", `{"name":"self.lamp.turn","arguments":{"on":true}}`, 200, []string{`"result":{"on":true}`, `"isError":false`, `"action":"req_llm"`}},
		{"call by the model's name", "POST", device + "/tools/call", `{"name":"self_lamp_turn","arguments":{"on":"true"}}`, 200, []string{`"result":{"on":true}`}},
		{"call that fails", "POST", device + "/tools/call", `{"name":"self.lamp.read"}`, 200, []string{`"isError":true`, "the lamp is dark"}},
		{"call with wrong arguments", "POST", device + "/tools/call", `{"name":"self.lamp.turn","arguments":{"on":7}}`, 200, []string{`"isError":true`, "参数不对"}},
		{"call that the conversation completes", "POST", device + "/tools/call", `{"name":"sing"}`, 200, []string{`"action":"response"`, `"response":"24:6f:28:aa:10:02 mcp_handler_sing la zh"`}},
		{"call of a tool for people", "POST", device + "/tools/call", `{"name":"self.reboot"}`, 200, []string{`"result":true`, `"isError":false`}},
		{"call of it by a name for models", "POST", device + "/tools/call", `{"name":"self_reboot"}`, 404, []string{"self_reboot"}},
		{"call of no tool", "POST", device + "/tools/call", `{"name":"self.oven"}`, 404, []string{"self.oven"}},
		{"call without a body", "POST", device + "/tools/call", ``, 400, []string{"EOF"}},
		{"call with a list", "POST", device + "/tools/call", `[]`, 400, []string{"arguments"}},
		{"call with too much", "POST", device + "/tools/call", `{"name":"` + strings.Repeat("x", maxBody) + `"}`, 413, []string{"1048576 bytes"}},
		{"nothing here", "GET", device + "/dreams", "", 404, []string{"没有这个地址"}},
		{"wrong method", "DELETE", device + "/tools", "", 404, []string{"nothing is here: DELETE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
			if w.Code != c.status || !json.Valid(w.Body.Bytes()) {
				t.Errorf("status %d, want %d: %.300s", w.Code, c.status, w.Body)
			}
			for _, want := range c.want {
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("no %s in %.600s", want, w.Body)
				}
			}
		})
	}
}

// A call by this way leaves a line for the audit, as all that come from outside
// do, and the gateway's limits are its own: a rate is one rate for both.
func TestDeviceAPIOfAGateway(t *testing.T) {
	box := router.New(router.Options{}, lamp{})
	t.Cleanup(box.Close)
	var log safeLog
	g := New(Options{Access: Access{Tokens: []catalog.Token{{Name: "laptop", Token: "s3cret", Rate: 1}}}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	t.Cleanup(g.Close)
	h := g.DeviceAPI(house{box})
	ask := func(h http.Handler, method, path, body string) int {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer s3cret")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if code := ask(h, "POST", "/api/devices/24:6F:28:AA:10:02/tools/call", `{"name":"self.lamp.turn","arguments":{"on":true}}`); code != 200 {
		t.Fatalf("status %d", code)
	}
	for _, want := range []string{"outward call", "token=laptop", "via=api", "tool=device-246f28aa1002.self.lamp.turn", "outcome=req_llm"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, &log)
		}
	}
	if code := ask(g, "GET", "/api/mcp/tools", ""); code != 200 { // the second of two
		t.Errorf("status %d", code)
	}
	if code := ask(h, "GET", "/api/devices", ""); code != 429 {
		t.Errorf("over the rate: status %d", code)
	}
}

// TestToolsForPeople: only who administers the server sees and calls what is meant for people, by no way of the gateway a model's program does.
func TestToolsForPeople(t *testing.T) {
	box := router.New(router.Options{}, lamp{})
	t.Cleanup(box.Close)
	accounts := map[string]*catalog.Account{
		"admin":  {Person: "p", Whole: true, Admin: true},
		"tools":  {Person: "p", Whole: true, Read: true, Say: true, Tools: true},
		"member": {Person: "q", Devices: []string{"24:6f:28:aa:10:02"}, Admin: true},
	}
	account := func(_ context.Context, shown string) (*catalog.Token, error) {
		if a := accounts[shown]; a != nil {
			return &catalog.Token{Name: shown, Account: a}, nil
		}
		return nil, nil
	}
	g := New(Options{
		Access: Access{Tokens: []catalog.Token{{Name: "laptop", Token: "of the settings"}}, Account: account},
		Offer:  offer.Options{Devices: house{box}}, Log: slog.New(slog.DiscardHandler),
	})
	g.SetOwner(ownerToken)
	t.Cleanup(g.Close)
	h := g.DeviceAPI(house{box})
	ask := func(h http.Handler, token, method, path, body string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for token, may := range map[string]bool{ownerToken: true, "admin": true, "tools": false, "member": false, "of the settings": false} {
		_, listed := ask(h, token, "GET", "/api/devices/24:6F:28:AA:10:02/tools", "")
		if !strings.Contains(listed, "self.lamp.turn") || strings.Contains(listed, "self.reboot") != may {
			t.Errorf("%s is listed %s", token, listed)
		}
		code, said := ask(h, token, "POST", "/api/devices/24:6F:28:AA:10:02/tools/call", `{"name":"self.reboot"}`)
		if may != (code == 200) || !may && (code != 403 || !strings.Contains(said, "meant for people")) {
			t.Errorf("%s calls it: %d %s", token, code, said)
		}
		if _, all := ask(g, token, "GET", "/api/mcp/tools", ""); !strings.Contains(all, "self.lamp.turn") || strings.Contains(all, "reboot") {
			t.Errorf("%s is offered %s", token, all)
		}
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"device-246f28aa1002.self.reboot","arguments":{}}}`
		if _, said := ask(g, token, "POST", "/api/mcp/jsonrpc", call); !strings.Contains(said, "-32601") {
			t.Errorf("%s calls it by MCP: %s", token, said)
		}
	}
}

// nobody is a house without devices.
type nobody struct{ house }

func (nobody) List() []offer.Device { return nil }

func TestDeviceAPIEmpty(t *testing.T) {
	w := httptest.NewRecorder()
	openAPI(nobody{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/devices", nil))
	if got := strings.TrimSpace(w.Body.String()); got != `{"devices":[]}` {
		t.Errorf("got %s", got)
	}
}

func (h house) Named(string) bool { return false }
