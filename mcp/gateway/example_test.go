package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"xiaozhi/mcp/gateway/catalog"
)

// sum adds two numbers.
func sum(_ context.Context, arguments map[string]any) (any, error) {
	a, _ := arguments["a"].(int64)
	b, _ := arguments["b"].(int64)
	return a + b, nil
}

// A program that embeds the gateway offers a tool of its own, while it runs.
func Example() {
	g := New(Options{})
	g.SetOwner("a secret of the owner")
	defer g.Close()
	err := g.Registry().Add(catalog.Tool{
		Stream: "maths", Name: "sum", Description: "Adds two numbers.",
		Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`),
		Run: func(_ context.Context, arguments map[string]any) (any, error) {
			a, _ := arguments["a"].(int64)
			b, _ := arguments["b"].(int64)
			return a + b, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/mcp/jsonrpc/maths", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"maths.sum","arguments":{"a":1023123,"b":2352345}}}`))
	r.Header.Set("Authorization", "Bearer a secret of the owner")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	var answer struct {
		Result struct {
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Result.Content[0].Text)
	// Output: 3375468
}
