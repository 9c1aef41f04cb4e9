package catalog_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

func ExampleRegistry() {
	registry := catalog.NewRegistry(router.Gate{})
	err := registry.Add(catalog.Tool{
		Stream: "desktop", Name: "sum", Description: "Adds numbers.",
		Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`),
		Run: func(_ context.Context, arguments map[string]any) (any, error) {
			return arguments["a"].(float64) + arguments["b"].(float64), nil
		},
	})
	if err != nil {
		panic(err)
	}
	log := slog.New(slog.DiscardHandler)
	runner := catalog.NewRunner(router.Gate{}, func() *time.Location { return time.UTC }, log)
	views := catalog.NewViews(registry, runner, "1.0.0", log)
	defer views.Close()

	view, _ := views.Of(catalog.Caller{Owner: true}, "desktop")
	tool, _ := view.Tool("sum")
	result, err := runner.Run(catalog.WithCaller(context.Background(), catalog.Caller{Owner: true}), tool, json.RawMessage(`{"a":1.25,"b":2.25}`), nil)
	if err != nil {
		panic(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(result.Content)
	// Output: [{"type":"text","text":"3.5"}]
}
