package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// TestPages: a walk over the pages of a long list meets each tool once, in order.
func TestPages(t *testing.T) {
	r := newRig(t, nil)
	for i := range 1200 {
		if err := r.Registry().Add(catalog.Tool{Stream: "many", Name: fmt.Sprintf("t%04d", i), Run: sum}); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	cursor, pages := "", 0
	for {
		a := r.rpc("/api/mcp/jsonrpc/many", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":%q}}`, cursor))
		all = append(all, names(t, field(t, a.body, "result", "tools"))...)
		cursor, _ = field(t, a.body, "result", "nextCursor").(string)
		if pages++; cursor == "" || pages > 10 {
			break
		}
	}
	if len(all) != 1200 || pages != 3 || !slices.IsSorted(all) || len(slices.Compact(all)) != 1200 {
		t.Errorf("%d tools on %d pages", len(all), pages)
	}
	if got := names(t, field(t, r.do("GET", "/api/mcp/tools?stream=many", "").body, "tools")); len(got) != 1200 {
		t.Errorf("%d by REST", len(got))
	}
}

// TestPromptsAndResources: prompts check their arguments; what crashes costs one
// request; what is registered and replaced while it runs is followed.
func TestPromptsAndResources(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", nil)
	ask(t, conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	r.Registry().AddPrompt("", &sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, q *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		if q.Params.Arguments["who"] == "panic" {
			panic("secret")
		}
		return &sdk.GetPromptResult{Description: "greets", Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Hello " + q.Params.Arguments["who"]}}}}, nil
	})
	if got := read(t, conn); field(t, got, "method") != "notifications/prompts/list_changed" {
		t.Errorf("told %s", got)
	}
	r.Registry().AddResource("", &sdk.Resource{URI: "x://panic", Name: "p"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) { panic("secret") })
	if got := read(t, conn); field(t, got, "method") != "notifications/resources/list_changed" {
		t.Errorf("told %s", got)
	}
	get := func(arguments string) string {
		return r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"greet","arguments":`+arguments+`}}`).body
	}
	if got := get(`{"who":"Bob"}`); field(t, got, "result", "messages", 0, "content", "text") != "Hello Bob" {
		t.Errorf("greet: %s", got)
	}
	if got := get(`{}`); field(t, got, "error", "code") != -32602.0 || !strings.Contains(got, "who") {
		t.Errorf("a missing argument: %s", got)
	}
	if got := get(`{"who":"panic"}`); field(t, got, "error", "code") != -32603.0 || strings.Contains(got, "secret") {
		t.Errorf("a crash: %s", got)
	}
	if a := r.do("POST", "/api/mcp/prompts/greet", `{"arguments":{"who":"Ann"}}`); field(t, a.body, "prompt", "messages", 0, "content", "text") != "Hello Ann" || field(t, a.body, "prompt", "description") != "greets" {
		t.Errorf("by REST: %d %s", a.status, a.body)
	}
	if a := r.do("POST", "/api/mcp/prompts/greet", ``); a.status != 400 || field(t, a.body, "error", "code") != "INVALID_ARGUMENTS" {
		t.Errorf("by REST, without arguments: %d %s", a.status, a.body)
	}
	if a := r.do("POST", "/api/mcp/prompts/nope", ``); a.status != 404 || field(t, a.body, "error", "code") != "PROMPT_NOT_FOUND" {
		t.Errorf("by REST, unknown: %d %s", a.status, a.body)
	}
	if a := r.do("GET", "/api/mcp/prompts", ""); field(t, a.body, "count") != 4.0 {
		t.Errorf("prompts: %s", a.body)
	}
	if a := r.do("GET", "/api/mcp/resources/x%3A%2F%2Fpanic", ""); a.status != 500 || strings.Contains(a.body, "secret") {
		t.Errorf("a resource that crashes: %d %s", a.status, a.body)
	}
	a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://nope"}}`)
	if field(t, a.body, "error", "data", "uri") != "x://nope" {
		t.Errorf("an unknown resource: %s", a.body)
	}
}

// TestCacheScope: what a token sees may not be kept for others (2026-07-28).
func TestCacheScope(t *testing.T) {
	r := newRig(t, tokened)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`
	a := r.rpc("/api/mcp/jsonrpc", list, "Authorization: Bearer t-time", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")
	if got := field(t, event(t, a.body), "result", "cacheScope"); got != "private" {
		t.Errorf("%v", got)
	}
}

// TestLevels: a level that there is not is refused.
func TestLevels(t *testing.T) {
	r := newRig(t, nil)
	for level, ok := range map[string]bool{"warning": true, "loud": false, "": false} {
		a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"`+level+`"}}`)
		if ok != (field(t, a.body, "error") == nil) || (!ok && field(t, a.body, "error", "code") != -32602.0) {
			t.Errorf("%q: %s", level, a.body)
		}
	}
}

// TestRegistering: what cannot be registered is refused with a reason, and a tool
// that is replaced or removed is gone at once.
func TestRegistering(t *testing.T) {
	r := newRig(t, nil)
	for what, tool := range map[string]catalog.Tool{
		"letters, digits":    {Name: "灯", Run: sum},
		"1 to 128":           {Name: strings.Repeat("x", 129), Run: sum},
		"stream name":        {Stream: "a.b", Name: "x", Run: sum},
		"one of Run":         {Name: "x"},
		`"type":"object"`:    {Name: "x", Run: sum, Schema: []byte(`{"type":"string"}`)},
		"no JSON object":     {Name: "x", Run: sum, Schema: []byte(`[]`)},
		"references go in a": {Name: "x", Run: sum, Schema: []byte(`{"type":"object","allOf":[{"$ref":"#"}]}`)},
	} {
		if err := r.Registry().Add(tool); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	add := func(answer string) {
		t.Helper()
		if err := r.Registry().Add(catalog.Tool{Stream: "mine", Name: "x", Run: func(context.Context, map[string]any) (any, error) { return answer, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	text := func() any {
		return field(t, r.call("/api/mcp/jsonrpc", "mine.x", "{}").body, "result", "content", 0, "text")
	}
	add("one")
	if got := text(); got != "one" {
		t.Errorf("got %v", got)
	}
	add("two") // it looks the same
	if got := text(); got != "two" {
		t.Errorf("got %v", got)
	}
	r.Registry().Remove("mine.x")
	if a := r.call("/api/mcp/jsonrpc", "mine.x", "{}"); field(t, a.body, "error", "code") != -32601.0 {
		t.Errorf("after it was removed: %s", a.body)
	}
	if err := r.Registry().Add(catalog.Tool{Stream: "system", Name: "info", Run: sum}); err != nil {
		t.Fatal(err)
	}
	if a := r.call("/api/mcp/jsonrpc", "system.info", "{}"); !strings.Contains(a.body, "platform") {
		t.Errorf("a core tool was replaced: %s", a.body)
	}
}

// TestUnknown: what is not there is told in the client's language, with the code
// that MCP has for it, and leaves a line in the audit.
func TestUnknown(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", http.Header{"Accept-Language": {"en"}})
	ask(t, conn, `{"type":"call_tool","name":"no.such"}`)
	for _, c := range []struct{ method, params, zh, en string }{
		{"prompts/get", `{"name":"nobody"}`, "提示词未找到: nobody", "prompt not found: nobody"},
		{"resources/read", `{"uri":"xiaozhi://nothing"}`, "资源未找到: xiaozhi://nothing", "resource not found: xiaozhi://nothing"},
		{"resources/read", `{"uri":"xiaozhi://devices/nobody/status"}`, "资源未找到: xiaozhi://devices/nobody/status", "resource not found: xiaozhi://devices/nobody/status"},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":` + c.params + `}`
		for got, want := range map[string]string{
			r.rpc("/api/mcp/jsonrpc", body).body:                        c.zh,
			r.rpc("/api/mcp/jsonrpc", body, "Accept-Language: en").body: c.en,
			ask(t, conn, body): c.en,
		} {
			if field(t, got, "error", "code") != -32602.0 || field(t, got, "error", "message") != want {
				t.Errorf("%s: %s", c.method, got)
			}
			if uri := "xiaozhi://"; strings.Contains(c.params, uri) && !strings.Contains(got, `"data":{"uri":"`+uri) {
				t.Errorf("%s: no uri in the data: %s", c.method, got)
			}
		}
	}
	r.call("/api/mcp/jsonrpc", "no.such", "{}")
	r.do("POST", "/api/mcp/tools/call", `{"name":"no.such"}`)
	for _, via := range []string{"jsonrpc", "rest", "ws"} {
		if !strings.Contains(r.log.String(), "via="+via+" tool=no.such outcome=unknown") {
			t.Errorf("no audit of a call by %s: %s", via, r.log)
		}
	}
}

// TestReplacing: what is registered again under the same name is the new one, for
// readers at once and for clients that list it, whatever kind it is.
func TestReplacing(t *testing.T) {
	r := newRig(t, nil)
	for _, text := range []string{"one", "two"} {
		read := func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return textOf(req.Params.URI, text), nil
		}
		r.Registry().AddResource("mine", &sdk.Resource{URI: "mine://a", Name: text}, read)
		r.Registry().AddResourceTemplate("mine", &sdk.ResourceTemplate{URITemplate: "mine://of/{id}", Name: text}, read)
		r.Registry().AddPrompt("mine", &sdk.Prompt{Name: "mine", Description: text}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Description: text}, nil
		})
		for _, c := range []struct{ method, params string }{
			{"resources/read", `{"uri":"mine://a"}`},
			{"resources/read", `{"uri":"mine://of/x"}`},
			{"prompts/get", `{"name":"mine"}`},
			{"resources/templates/list", `{}`},
			{"resources/list", `{}`},
			{"prompts/list", `{}`},
		} {
			for _, path := range []string{"/api/mcp/jsonrpc", "/api/mcp/jsonrpc/mine"} {
				a := r.rpc(path, `{"jsonrpc":"2.0","id":1,"method":"`+c.method+`","params":`+c.params+`}`)
				if !strings.Contains(a.body, `"`+text+`"`) {
					t.Errorf("%s of %s at %s: %s", c.method, text, path, a.body)
				}
			}
		}
	}
}
