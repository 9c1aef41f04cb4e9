package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

const benchCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop","arguments":{}}}`

// BenchmarkCall is a call of a trivial tool over HTTP keep-alive, beside the same
// call of a server that is nothing but the SDK.
func BenchmarkCall(b *testing.B) {
	g := newOwned(Options{})
	defer g.Close()
	if err := g.Registry().Add(catalog.Tool{Name: "noop", Run: func(context.Context, map[string]any) (any, error) { return "ok", nil }}); err != nil {
		b.Fatal(err)
	}
	bare := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	sdk.AddTool(bare, &sdk.Tool{Name: "noop"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "ok"}}}, nil, nil
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return bare }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	b.Run("gateway", func(b *testing.B) { benchPosts(b, g, "/api/mcp/jsonrpc", benchCall) })
	b.Run("rest", func(b *testing.B) { benchPosts(b, g, "/api/mcp/tools/call", `{"name":"noop","arguments":{}}`) })
	b.Run("sdk", func(b *testing.B) { benchPosts(b, handler, "/", benchCall) })
}

func benchPosts(b *testing.B, h http.Handler, path, body string) {
	b.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	client := s.Client()
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.URL+path, bytes.NewReader([]byte(body)))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Contains(data, []byte(`ok`)) {
			b.Fatalf("%d %s %v", resp.StatusCode, data, err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
