package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// gated is a rig whose tools note that they were run.
type gated struct {
	*rig
	mu  sync.Mutex
	ran []string
}

func (g *gated) note(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ran = append(g.ran, name)
}

// took returns what was run since it was last asked.
func (g *gated) took() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	ran := g.ran
	g.ran = nil
	return ran
}

// newGated offers tools of every kind: of other servers, that are passed on; of this
// server; of a file; registered by hand; and of a device.
func newGated(t *testing.T, rules router.Rules) *gated {
	t.Helper()
	g := &gated{}
	yes, object := true, json.RawMessage(`{"type":"object"}`)
	own := &fakeSource{tools: []mcp.Tool{
		{Name: "sum", Schema: object, Source: "local", Stream: "util"}, {Name: "burn", Schema: object, Source: "local", Stream: "util", Annotations: mcp.Annotations{Destructive: &yes}},
	}}
	own.call = func(_ context.Context, name string, _ map[string]any) (any, error) {
		g.note("local " + name)
		return "done", nil
	}
	g.rig = newRig(t, func(o *Options) {
		o.Gate = router.NewGate(rules)
		o.Offer.Local = own
		o.Offer.Shared = func() []mcp.Tool {
			tool := func(name string, trusted bool, a mcp.Annotations) mcp.Tool {
				return mcp.Tool{Name: name, Schema: object, Source: "external:shop", Stream: "shop", Trusted: trusted, Annotations: a}
			}
			return []mcp.Tool{
				tool("buy", false, mcp.Annotations{}), tool("look", false, mcp.Annotations{ReadOnly: &yes}), tool("order", true, mcp.Annotations{}),
				tool("wipe", true, mcp.Annotations{Destructive: &yes}), tool("List.Prices", true, mcp.Annotations{}),
			}
		}
		o.Offer.CallShared = func(_ context.Context, t mcp.Tool, _ map[string]any) (any, error) {
			source, name := t.Source, t.Name
			g.note(source + " " + name)
			return "done", nil
		}
	})
	for _, tool := range []catalog.Tool{
		{Stream: "home", Name: "lamp", Source: mcp.SourceFile}, {Stream: "hand", Name: "wave"}, {Stream: "hand", Name: "punch", Annotations: mcp.Annotations{Destructive: &yes}},
	} {
		tool.Run = func(context.Context, map[string]any) (any, error) {
			g.note(tool.Name)
			return "done", nil
		}
		if err := g.Registry().Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// ways are all ways to call a tool of the gateway.
func (g *gated) ways() map[string]func(name string) string {
	rpc := func(path string, header ...string) func(string) string {
		return func(name string) string {
			return g.rpc(path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, name), header...).body
		}
	}
	return map[string]func(string) string{
		"JSON-RPC": rpc("/api/mcp/jsonrpc"),
		"a batch": func(name string) string {
			return g.rpc("/api/mcp/jsonrpc", fmt.Sprintf(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q}}]`, name)).body
		},
		"a view": func(name string) string {
			stream, _, _ := strings.Cut(name, ".")
			return rpc("/api/mcp/jsonrpc/" + stream)(name)
		},
		"REST": func(name string) string {
			return g.do("POST", "/api/mcp/tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, name), "Content-Type: application/json").body
		},
		"WebSocket": func(name string) string {
			return ask(g.t, g.dialSocket("", nil), fmt.Sprintf(`{"type":"call_tool","requestId":"1","name":%q,"arguments":{}}`, name))
		},
	}
}

// What needs the yes of a person is not run for a program, by any way, and neither is
// what the settings deny, however they spell it.
func TestGateOutward(t *testing.T) {
	for _, c := range []struct {
		rules router.Rules
		tool  string
		runs  bool
	}{
		{router.Rules{}, "shop.buy", false}, // another server's, which does not say what it does
		{router.Rules{}, "shop.look", true},
		{router.Rules{}, "shop.order", true},
		{router.Rules{}, "shop.wipe", false},
		{router.Rules{}, "util.burn", false},
		{router.Rules{}, "util.sum", true},
		{router.Rules{}, "hand.punch", false},
		{router.Rules{}, "hand.wave", true},
		{router.Rules{}, "home.lamp", true},
		{router.Rules{Confirm: []string{"LAMP"}}, "home.lamp", false},
		{router.Rules{Confirm: []string{"home.*"}}, "home.lamp", false},
		{router.Rules{Confirm: []string{"file/*"}}, "home.lamp", false},
		{router.Rules{Confirm: []string{"gateway/w*"}}, "hand.wave", false},
		{router.Rules{Confirm: []string{"external:shop/*"}}, "shop.order", false},
		{router.Rules{Confirm: []string{"list_prices"}}, "shop.List.Prices", false},
		{router.Rules{Deny: []string{"list_prices"}}, "shop.List.Prices", false},
		{router.Rules{Deny: []string{"list.*"}}, "shop.List.Prices", false},
		{router.Rules{Deny: []string{"External:Shop/*"}}, "shop.order", false},
		{router.Rules{Deny: []string{"local/*"}}, "util.sum", false},
		{router.Rules{Deny: []string{"SUM"}}, "util.sum", false},
		{router.Rules{Deny: []string{"home.lamp"}}, "home.lamp", false},
		{router.Rules{Deny: []string{"hand*"}}, "hand.wave", false},
		{router.Rules{Deny: []string{"system.info"}}, "system.info", false},
	} {
		t.Run(fmt.Sprint(c.tool, c.rules), func(t *testing.T) {
			g := newGated(t, c.rules)
			until(t, "tools of others", func() bool {
				return len(c.rules.Deny) > 0 || strings.Contains(g.do("GET", "/api/mcp/tools", "").body, "shop.")
			})
			for way, call := range g.ways() {
				body := call(c.tool)
				ran := g.took()
				if c.runs != (len(ran) == 1) || c.runs != strings.Contains(body, "done") {
					t.Errorf("%s: ran %q: %s", way, ran, body)
				}
				if !c.runs && len(c.rules.Deny) == 0 && !strings.Contains(body, "需要用户口头同意") {
					t.Errorf("%s: not told why: %s", way, body)
				}
			}
			listed := names(t, field(t, g.do("GET", "/api/mcp/tools", "").body, "tools"))
			if hidden := len(c.rules.Deny) > 0; hidden == slices.Contains(listed, c.tool) {
				t.Errorf("listed: %q", listed)
			}
		})
	}
}

// A call of a tool of a device is not run without the yes of its user either, and what
// its router denies is not there.
func TestGateOfDevices(t *testing.T) {
	for rules, want := range map[string]router.Rules{
		"confirm": {Confirm: []string{"SELF.audio_speaker.*"}}, "confirm by the model's name": {Confirm: []string{"self_audio_speaker_set_volume"}},
		"confirm by source": {Confirm: []string{"device/*volume"}}, "deny": {Deny: []string{"self_audio*"}},
	} {
		g := newGated(t, router.Rules{})
		ran := false
		s := &fakeSource{tools: speakerTools(), call: func(context.Context, string, map[string]any) (any, error) {
			ran = true
			return "done", nil
		}}
		box := router.New(router.Options{Rules: want}, s)
		defer box.Close()
		g.home.mu.Lock()
		g.home.boxes[kitchenID] = box
		g.home.mu.Unlock()
		g.DeviceChanged(kitchenID)
		body := fmt.Sprintf(`{"name":%q,"arguments":{"volume":5}}`, kitchenStream+".self.audio_speaker.set_volume")
		a := g.do("POST", "/api/mcp/tools/call", body, "Content-Type: application/json")
		if ran || strings.Contains(a.body, "done") {
			t.Errorf("%s: %s", rules, a.body)
		}
	}
}

// Another gate counts at once, by all ways, and the server's own tools are offered as they are now.
func TestGateIsReplaced(t *testing.T) {
	g := newGated(t, router.Rules{})
	g.Renew(router.NewGate(router.Rules{Deny: []string{"sum"}, Confirm: []string{"lamp"}}), nil)
	listed := names(t, field(t, g.do("GET", "/api/mcp/tools", "").body, "tools"))
	if slices.Contains(listed, "util.sum") || !slices.Contains(listed, "home.lamp") {
		t.Errorf("listed: %q", listed)
	}
	for way, call := range g.ways() {
		for _, tool := range []string{"util.sum", "home.lamp"} {
			if body := call(tool); len(g.took()) > 0 || strings.Contains(body, "done") {
				t.Errorf("%s: %s was run: %s", way, tool, body)
			}
		}
	}
	g.Renew(router.NewGate(router.Rules{}), nil)
	for way, call := range g.ways() {
		if body := call("util.sum"); len(g.took()) != 1 {
			t.Errorf("%s: not run again: %s", way, body)
		}
	}
}
