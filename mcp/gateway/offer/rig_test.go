package offer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// viewOf returns what the owner sees of a registry.
func viewOf(r *catalog.Registry) *catalog.View {
	log := slog.New(slog.DiscardHandler)
	v, _ := catalog.NewViews(r, catalog.NewRunner(router.Gate{}, utc, log), "test", log).Of(english(), "")
	return v
}

// english returns a caller in English.
func english() catalog.Caller {
	return catalog.Caller{Owner: true, Language: "en"}
}

// answer is the result of a call.
type answer struct {
	text    string
	failed  bool
	invalid string
}

func (a answer) want(t *testing.T, text string) {
	t.Helper()
	if a.failed || a.text != text {
		t.Errorf("%+v, want %s", a, text)
	}
}

// call runs a tool of a registry for a caller in English.
func call(t *testing.T, r *catalog.Registry, name, arguments string) answer {
	t.Helper()
	e, ok := viewOf(r).Tool(name)
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	ctx := catalog.WithCaller(t.Context(), english())
	result, err := catalog.NewRunner(router.Gate{}, utc, slog.New(slog.DiscardHandler)).Run(ctx, e, json.RawMessage(arguments), nil)
	if bad, invalid := errors.AsType[*catalog.ArgumentError](err); invalid {
		return answer{invalid: bad.Why}
	}
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range result.Content {
		texts = append(texts, c.(*sdk.TextContent).Text)
	}
	return answer{text: strings.Join(texts, "\n"), failed: result.IsError}
}

// offered offers tools, and returns what runs one of them.
func offered(t *testing.T, tools ...HTTPTool) func(name, arguments string) answer {
	t.Helper()
	r, p := catalog.NewRegistry(router.Gate{}), &catalog.Part{}
	for _, tool := range tools {
		if err := p.AddTool(tool.outward()); err != nil {
			t.Fatal(err)
		}
	}
	r.Set(catalog.PartFiles, p)
	return func(name, arguments string) answer { return call(t, r, name, arguments) }
}

// home is where fake devices come and go. Each can wave.
type home struct {
	mu  sync.Mutex
	ids []string
}

func (h *home) set(ids ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids = ids
}

func (h *home) List() []Device {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Device
	for _, id := range h.ids {
		out = append(out, Device{ID: id, Name: "name of " + id, Language: "en"})
	}
	return out
}

func (h *home) Survey(string) ([]router.Listed, bool) { return nil, false }

func (h *home) Offers(id string) ([]router.Offer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.ids, id) {
		return nil, false
	}
	wave := mcp.Tool{Name: "self.wave", Description: "waves", Schema: json.RawMessage(`{"type":"object"}`), Source: "device", Origin: mcp.Remote}
	return []router.Offer{{Tool: wave, LLMName: "self_wave"}}, true
}

func (h *home) Call(_ context.Context, id string, c mcp.Call) (mcp.ActionResponse, string) {
	if c.Arguments == `{"bad":1}` {
		return mcp.ActionResponse{Action: mcp.ActionTypeError}, "bad is unknown"
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: id + " " + c.Name}, ""
}

func (h *home) Calls(string) []router.Record { return nil }

func (h *home) Named(string) bool { return false }
