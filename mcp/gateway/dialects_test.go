package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
)

// Where revisions and older clients differ: the rows of docs/mcp.md 7.

func (r *rig) call(path, name, arguments string, header ...string) answer {
	r.t.Helper()
	return r.rpc(path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments), header...)
}

// TestRESTStreams: streams are both at the top and under data, with the same
// values; count is that of streams, and each has a group, also an empty one.
func TestRESTStreams(t *testing.T) {
	r := newRig(t, nil)
	a := r.do("GET", "/api/mcp/tools/streams", "")
	for _, key := range []string{"streams", "groups", "count"} {
		top, err := json.Marshal(field(t, a.body, key))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(field(t, a.body, "data", key))
		if err != nil {
			t.Fatal(err)
		}
		if string(top) != string(data) {
			t.Errorf("%s: %s and %s", key, top, data)
		}
	}
	streams := field(t, a.body, "streams").([]any)
	groups := field(t, a.body, "groups").(map[string]any)
	if field(t, a.body, "count") != float64(len(streams)) || len(groups) != len(streams) {
		t.Errorf("%d streams, %d groups, count %v", len(streams), len(groups), field(t, a.body, "count"))
	}
	if list, ok := groups["prompts"].([]any); !ok || len(list) != 0 {
		t.Errorf("the group without tools: %v", groups["prompts"])
	}
	if got := names(t, groups["time"]); !slices.Contains(got, "time.now") || !slices.Contains(got, "time.get_current_time") {
		t.Errorf("time: %v", got)
	}
}

// TestEnvelopes: an envelope goes out as it is, as text; one that says
// that it failed is an error, with the error as {code,message} whatever it was.
func TestEnvelopes(t *testing.T) {
	r := newRig(t, nil)
	for name, result := range map[string]any{
		"ok":     map[string]any{"success": true, "data": map[string]any{"message": "已回到桌面"}},
		"text":   map[string]any{"success": false, "error": "it broke"},
		"object": map[string]any{"success": false, "error": map[string]any{"code": "SHOW_DESKTOP_FAILED", "message": "it broke"}},
	} {
		if err := r.Registry().Add(catalog.Tool{Stream: "desk", Name: name, Run: func(context.Context, map[string]any) (any, error) { return result, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	text := func(name string) (string, bool) {
		a := r.call("/api/mcp/jsonrpc", "desk."+name, "{}")
		return field(t, a.body, "result", "content", 0, "text").(string), field(t, a.body, "result", "isError").(bool)
	}
	if got, failed := text("ok"); failed || got != `{"data":{"message":"已回到桌面"},"success":true}` {
		t.Errorf("ok: %s, %v", got, failed)
	}
	for name, code := range map[string]string{"text": "EXECUTION_FAILED", "object": "SHOW_DESKTOP_FAILED"} {
		got, failed := text(name)
		if !failed || field(t, got, "error", "code") != code || field(t, got, "error", "message") != "it broke" {
			t.Errorf("%s: %s, %v", name, got, failed)
		}
	}
	a := r.do("POST", "/api/mcp/tools/call", `{"name":"desk.text"}`)
	if a.status != 200 || field(t, a.body, "success") != false || field(t, a.body, "isError") != true {
		t.Errorf("by REST: %d %s", a.status, a.body)
	}
}

// TestErrorsByRevision: an unknown tool and wrong arguments, by the revision;
// a tool that ran and failed is a result in all of them.
func TestErrorsByRevision(t *testing.T) {
	r := newRig(t, nil)
	if err := r.Registry().Add(catalog.Tool{Name: "breaks", Run: func(context.Context, map[string]any) (any, error) {
		return nil, &mcp.ToolError{Message: "it broke"}
	}}); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		header := []string{"Mcp-Protocol-Version: " + version}
		if version == "" {
			header = nil
		}
		unknown := -32602.0
		if version == "" || version == "2024-11-05" {
			unknown = -32601
		}
		a := r.call("/api/mcp/jsonrpc", "nope", "{}", header...)
		if a.status != 200 || field(t, a.body, "error", "code") != unknown || field(t, a.body, "error", "message") != "工具未找到: nope" {
			t.Errorf("%q: unknown tool: %d %s", version, a.status, a.body)
		}
		a = r.call("/api/mcp/jsonrpc", "util.hash", `{"algorithm":"crc"}`, header...)
		if version == "2025-11-25" {
			if field(t, a.body, "result", "isError") != true || !strings.Contains(a.body, "util.hash") {
				t.Errorf("%q: wrong arguments: %s", version, a.body)
			}
		} else if field(t, a.body, "error", "code") != -32602.0 || !strings.Contains(a.body, "util.hash") {
			t.Errorf("%q: wrong arguments: %s", version, a.body)
		}
		a = r.call("/api/mcp/jsonrpc", "breaks", `{}`, header...)
		if field(t, a.body, "result", "isError") != true || field(t, a.body, "result", "content", 0, "text") != "it broke" {
			t.Errorf("%q: a failure: %s", version, a.body)
		}
	}
	a := r.do("POST", "/api/mcp/tools/call", `{"name":"util.hash","arguments":{}}`)
	if a.status != 400 || field(t, a.body, "error", "code") != "INVALID_ARGUMENTS" {
		t.Errorf("by REST: %d %s", a.status, a.body)
	}
	a = r.call("/api/mcp/jsonrpc", "nope", "{}", "Accept-Language: en-GB,zh;q=0.5")
	if field(t, a.body, "error", "message") != "tool not found: nope" {
		t.Errorf("in English: %s", a.body)
	}
}

// TestRevisions: all five revisions are spoken, health names that of 2024, and an
// unknown revision gets the newest that has a handshake.
func TestRevisions(t *testing.T) {
	r := newRig(t, nil)
	a := r.do("GET", "/api/mcp/health", "")
	if field(t, a.body, "protocolVersion") != "2024-11-05" || len(field(t, a.body, "supportedProtocolVersions").([]any)) != 5 || field(t, a.body, "version") != "1.0.0" {
		t.Errorf("health: %s", a.body)
	}
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "1999-01-01": "2025-11-25",
	} {
		a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+asked+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		if !strings.Contains(a.body, `"protocolVersion":"`+want+`"`) || a.header.Get("Mcp-Session-Id") == "" {
			t.Errorf("%s: %d %s", asked, a.status, a.body)
		}
	}
	a = r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
	if a.status != 200 || !strings.Contains(a.body, `"resultType":"complete"`) {
		t.Errorf("2026-07-28: %d %.300s", a.status, a.body)
	}
	a = r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Protocol-Version: 2023-01-01")
	if a.status != 400 || field(t, a.body, "error", "code") != -32600.0 {
		t.Errorf("a revision that never was: %d %s", a.status, a.body)
	}
}

// TestPathsBeforeNames: literal paths win over tools of the same name, which can
// still be called.
func TestPathsBeforeNames(t *testing.T) {
	r := newRig(t, nil)
	for _, name := range []string{"streams", "stream", "call"} {
		if err := r.Registry().Add(catalog.Tool{Name: name, Run: func(context.Context, map[string]any) (any, error) { return "I am " + name, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	if a := r.do("GET", "/api/mcp/tools/streams", ""); field(t, a.body, "groups") == nil {
		t.Errorf("streams: %s", a.body)
	}
	if a := r.do("GET", "/api/mcp/tools/call", ""); a.status != 405 {
		t.Errorf("call: %d %s", a.status, a.body)
	}
	for _, name := range []string{"streams", "stream", "call"} {
		if a := r.call("/api/mcp/jsonrpc", name, "{}"); field(t, a.body, "result", "content", 0, "text") != "I am "+name {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

// TestResourceURIs: the URI of a resource may be escaped or not.
func TestResourceURIs(t *testing.T) {
	r := newRig(t, nil)
	r.Registry().AddResource("", &sdk.Resource{URI: "str:////Users/to/some/path/", Name: "cwd"}, func(_ context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return textOf(q.Params.URI, "here"), nil
	})
	for path, want := range map[string]string{
		"/api/mcp/resources/xiaozhi://devices":                             "kitchen",
		"/api/mcp/resources/xiaozhi:%2F%2Fdevices":                         "kitchen",
		"/api/mcp/resources/xiaozhi%3A%2F%2Fdevices":                       "kitchen",
		"/api/mcp/resources/str%3A%2F%2F%2F%2FUsers%2Fto%2Fsome%2Fpath%2F": "here",
		"/api/mcp/resources/xiaozhi%253A%252F%252Fdevices":                 "RESOURCE_NOT_FOUND", // decoded once, no more
		"/api/mcp/resources/xiaozhi://nowhere":                             "RESOURCE_NOT_FOUND",
	} {
		if a := r.do("GET", path, ""); !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// TestMetadata: metadata for clients of 2024 only.
func TestMetadata(t *testing.T) {
	r := newRig(t, nil)
	for version, there := range map[string]bool{"2024-11-05": true, "2025-06-18": false} {
		a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, "Mcp-Protocol-Version: "+version)
		if got := strings.Contains(a.body, `"metadata":{"type":"application/json"}`); got != there {
			t.Errorf("%s: resources %s", version, a.body)
		}
		a = r.call("/api/mcp/jsonrpc", "time.now", "{}", "Mcp-Protocol-Version: "+version)
		if got := strings.Contains(a.body, `"metadata":{"executionTime":`); got != there {
			t.Errorf("%s: result %s", version, a.body)
		}
	}
}

// TestSamplingAndPing: sampling is a request of the server's, so it is none
// that a client can send; ping is there.
func TestSamplingAndPing(t *testing.T) {
	r := newRig(t, nil)
	if a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":"p","method":"ping"}`); a.body != `{"jsonrpc":"2.0","id":"p","result":{}}` {
		t.Errorf("ping: %s", a.body)
	}
	for _, method := range []string{"sampling/createMessage", "roots/list"} {
		a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{}}`)
		if field(t, a.body, "error", "code") != -32601.0 {
			t.Errorf("%s: %s", method, a.body)
		}
	}
}

// TestBareErrors: JSON-RPC that is wrong is answered as JSON-RPC has it, with
// HTTP 200; notifications with 202 and nothing.
func TestBareErrors(t *testing.T) {
	r := newRig(t, nil)
	for body, want := range map[string]string{
		``:                         `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`,
		`{"jsonrpc":`:              `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`,
		`[]`:                       `"code":-32600`,
		`7`:                        `"code":-32600`,
		`{"id":1,"method":"ping"}`: `{"jsonrpc":"2.0","id":1,"error":{"code":-32600`,
		`{"jsonrpc":"2.0","id":1}`: `"code":-32600`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                                                                                  `"id":null,"error":{"code":-32600`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                                                                                `"code":-32600`,
		`{"jsonrpc":"2.0","id":1,"method":"nope"}`:                                                                                                   `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"方法未找到: nope"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                                                                                             `"code":-32602`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`:                                                                                 `"code":-32602`,
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"nope"}}`:                                                                   `"code":-32602`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://nope"}}`:                                                             `"code":-32602`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"xiaozhi://devices"}}`:                                               `"code":-32600`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"zzz"}}`:                                                                   `"code":-32602`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`:                                                                                     ``,
		`{"jsonrpc":"2.0","id":4,"result":{}}`:                                                                                                       ``,
		`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`:                                                                                   ``,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"method":"nope"}]`: `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{"code":-32601`,
	} {
		a := r.rpc("/api/mcp/jsonrpc", body)
		status := 200
		if want == "" {
			status = 202
		}
		if a.status != status || !strings.Contains(a.body, want) || (want == "" && a.body != "") {
			t.Errorf("%.90s: %d %s, want %s", body, a.status, a.body, want)
		}
	}
}
