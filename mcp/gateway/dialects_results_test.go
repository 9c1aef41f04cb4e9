package gateway

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// TestConnectKinds: one address for two kinds of stream: events of MCP for clients
// that ask for events, plain objects for all others.
func TestConnectKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newOwned(Options{})
		defer g.Close()
		for accept, begins := range map[string]string{"": `data: {"type":"connected"`, "text/html, */*": `data: {"type":"connected"`, "text/event-stream": "event: endpoint\n"} {
			if got := connectFor(t, g, "/api/mcp/connect", accept, time.Second).Body.String(); !strings.HasPrefix(got, begins) {
				t.Errorf("Accept %q: %s", accept, got)
			}
		}
	})
}

// textOf is the text that a tool answers with, by JSON-RPC.
func (r *rig) textOf(name, arguments string) string {
	r.t.Helper()
	text, _ := field(r.t, r.call("/api/mcp/jsonrpc", name, arguments).body, "result", "content", 0, "text").(string)
	return text
}

// TestUUIDCount: uuids is a string for one and a list for more.
func TestUUIDCount(t *testing.T) {
	r := newRig(t, nil)
	for arguments, want := range map[string]reflect.Kind{`{}`: reflect.String, `{"count":1}`: reflect.String, `{"count":2}`: reflect.Slice} {
		if got := reflect.ValueOf(field(t, r.textOf("util.uuid", arguments), "uuids")).Kind(); got != want {
			t.Errorf("%s: %v, want %v", arguments, got, want)
		}
	}
}

// TestTimeForms: the forms of one time are the same time.
func TestTimeForms(t *testing.T) {
	r := newRig(t, nil)
	text := r.textOf("time.now", `{"timezone":"Asia/Shanghai"}`)
	iso, err := time.Parse(time.RFC3339, field(t, text, "iso").(string))
	if err != nil {
		t.Fatal(err)
	}
	if ms := int64(field(t, text, "timestamp").(float64)); iso.UnixMilli() != ms || int64(field(t, text, "unix").(float64)) != ms/1000 {
		t.Errorf("%s", text)
	}
}

// TestNodeVersion: nodeVersion is there, in a program that is none of Node's.
func TestNodeVersion(t *testing.T) {
	r := newRig(t, nil)
	text := r.textOf("system.info", `{}`)
	if field(t, text, "nodeVersion") != runtime.Version() || field(t, text, "goVersion") != runtime.Version() {
		t.Errorf("%s", text)
	}
}

// TestSchemaKeywords: no keyword of a schema is lost on its way from a source to
// the list, however deep.
func TestSchemaKeywords(t *testing.T) {
	const schema = `{"$defs":{"lamp":{"type":"object","additionalProperties":false,"properties":{"mood":{"enum":["red","暖"]},"at":{"type":"array","items":{"type":"integer","minimum":0},"maxItems":3}}}},
		"type":"object","properties":{"lamp":{"$ref":"#/$defs/lamp"},"any":{"anyOf":[{"type":"string","pattern":"^a"},{"type":"null"}],"default":null}},"required":["lamp"],"additionalProperties":false}`
	r := newRig(t, nil)
	source := &fakeSource{
		tools: []mcp.Tool{{Name: "self.lamp.paint", Description: "paints", Schema: json.RawMessage(schema), Source: "device", Origin: mcp.Remote}},
		call:  func(context.Context, string, map[string]any) (any, error) { return true, nil },
	}
	if err := r.Registry().Add(catalog.Tool{Stream: "own", Name: "paint", Schema: json.RawMessage(schema), Run: func(context.Context, map[string]any) (any, error) { return true, nil }}); err != nil {
		t.Fatal(err)
	}
	box := router.New(router.Options{}, source)
	t.Cleanup(box.Close)
	r.home.mu.Lock()
	r.home.boxes[kitchenID] = box
	r.home.mu.Unlock()
	r.DeviceChanged(kitchenID)
	want := field(t, schema)
	for _, name := range []string{"own.paint", kitchenStream + ".self.lamp.paint"} {
		until(t, name, func() bool { return r.do("GET", "/api/mcp/tools/"+name, "").status == 200 })
		if got := field(t, r.do("GET", "/api/mcp/tools/"+name, "").body, "tool", "inputSchema"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestResultsWithoutText: what a tool answers that is no text is JSON, and nothing is dropped.
func TestResultsWithoutText(t *testing.T) {
	r := newRig(t, nil)
	for name, c := range map[string]struct {
		result any
		want   string
	}{
		"number": {1.5, "1.5"}, "yes": {true, "true"}, "list": {[]any{"a", 1, nil}, `["a",1,null]`}, "object": {map[string]any{"a": map[string]any{"b": 1}}, `{"a":{"b":1}}`},
		"response": {mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: 7}, "7"},
	} {
		if err := r.Registry().Add(catalog.Tool{Stream: "odd", Name: name, Run: func(context.Context, map[string]any) (any, error) { return c.result, nil }}); err != nil {
			t.Fatal(err)
		}
		if got := r.textOf("odd."+name, "{}"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
