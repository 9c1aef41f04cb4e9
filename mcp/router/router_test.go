package router

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/schema"
)

// fakeSource is a source of functions. Only what a router uses is there.
type fakeSource struct {
	mcp.Source
	mu    sync.Mutex
	tools []mcp.Tool
	call  func(ctx context.Context, name string, arguments map[string]any) (any, error)
}

func (s *fakeSource) GetAvailableTools() []mcp.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]mcp.Tool(nil), s.tools...)
}

func (s *fakeSource) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	return s.call(ctx, name, arguments)
}

// source makes a source of tools that take anything.
func source(kind string, names ...string) *fakeSource {
	s := &fakeSource{call: func(_ context.Context, name string, _ map[string]any) (any, error) { return name, nil }}
	for _, name := range names {
		s.tools = append(s.tools, mcp.Tool{Name: name, Source: kind, Trusted: true, Schema: json.RawMessage(schema.Empty)})
	}
	return s
}

func newRouter(t *testing.T, o Options, sources ...mcp.Source) *Router {
	t.Helper()
	b := New(o, sources...)
	t.Cleanup(b.Close)
	return b
}

func prepare(t *testing.T, b *Router, name, arguments string) Prepared {
	t.Helper()
	p, refused := b.Prepare(mcp.Call{ID: "c1", Name: name, Arguments: arguments})
	if refused != nil {
		t.Fatalf("Prepare(%s): %+v", name, *refused)
	}
	return p
}

const volumeSchema = `{"type":"object","properties":{
	"volume":{"type":"integer","minimum":0,"maximum":100},
	"gain":{"type":"number"},
	"on":{"type":"boolean"},
	"theme":{"type":"string","enum":["light","dark","5","true"]},
	"maybe":{"type":["integer","null"]},
	"list":{"type":"array","items":{"type":"integer"}},
	"box":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
},"required":["volume"]}`

func TestRouterAllow(t *testing.T) {
	b := newRouter(t, Options{Rules: Rules{Allow: []string{"self.lamp.*", "exit"}, Deny: []string{"self.lamp.blink"}}},
		source("device", "self.lamp.set", "self.lamp.blink", "self.fan.set"), source("local", "exit", "get_current_time"))
	var got []string
	for _, o := range b.Offers() {
		got = append(got, o.Tool.Name)
	}
	if want := "exit self.lamp.set"; strings.Join(got, " ") != want {
		t.Errorf("offered %v, want %s", got, want)
	}
	if _, refused := b.Prepare(mcp.Call{Name: "self_fan_set"}); refused == nil || refused.Action != mcp.ActionTypeNotFound {
		t.Errorf("a tool that is not allowed can be called: %+v", refused)
	}
}

func TestRouterOffers(t *testing.T) {
	device := source("device", "self.lamp.set", "self.get", "self.reboot", "self.shell.run")
	device.tools[2].Annotations.Audience = []string{"user"}
	other := source("external:home", "get", "exit")
	var log bytes.Buffer
	b := newRouter(t, Options{
		Rules: Rules{Deny: []string{"self.shell.*", "["}}, Kinds: map[string]mcp.Kind{"self.get": mcp.Control},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}, other, source("iot", "Lamp.on", ""), device, source("local", "exit", "self_get"))
	list := func() string {
		var out []string
		for _, o := range b.Offers() {
			out = append(out, fmt.Sprintf("%s=%s/%s/%s", o.LLMName, o.Tool.Source, o.Tool.Name, o.Kind))
		}
		return strings.Join(out, " ")
	}
	want := "exit=local/exit/query self_get=local/self_get/query self_lamp_set=device/self.lamp.set/control " +
		"self_get_2=device/self.get/control Lamp_on=iot/Lamp.on/control get=external:home/get/query exit_2=external:home/exit/query"
	for range 3 {
		if got := list(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if n := strings.Count(log.String(), "tool name is taken"); n != 2 {
		t.Errorf("two taken names were logged %d times", n)
	}
	if n := strings.Count(log.String(), "malformed"); n != 1 {
		t.Errorf("a malformed pattern was logged %d times", n)
	}
	if p := prepare(t, b, "self_get_2", ""); p.Offer.Tool.Name != "self.get" {
		t.Errorf("self_get_2 is %+v", p.Offer)
	}
	for _, hidden := range []string{"self_reboot", "self_shell_run", "self.get", ""} {
		if _, refused := b.Prepare(mcp.Call{Name: hidden}); refused == nil {
			t.Errorf("%q can be called", hidden)
		}
	}
	b.Add(other) // there already
	b.Add(nil)
	if got := list(); got != want {
		t.Errorf("after Add: %s", got)
	}
}

func TestPrepare(t *testing.T) {
	device := source("device", "self.set_volume", "self.odd")
	device.tools[0].Schema = json.RawMessage(volumeSchema)
	device.tools[1].Schema = json.RawMessage(`{"$ref":"#"}`)
	var log bytes.Buffer
	b := newRouter(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, device)
	tests := map[string]struct {
		name, arguments string
		want            mcp.Action // of the refusal; ReqLLM for none
		text            string
	}{
		"repaired":      {"self_set_volume", `{"volume":"55"}`, mcp.ActionTypeReqLLM, `{"volume":55}`},
		"missing":       {"self_set_volume", ``, mcp.ActionTypeError, "volume"},
		"too large":     {"self_set_volume", `{"volume":101}`, mcp.ActionTypeError, `argument "volume": maximum: 101`},
		"broken JSON":   {"self_set_volume", `{`, mcp.ActionTypeError, "no JSON object"},
		"unknown tool":  {"self_fly", `{}`, mcp.ActionTypeNotFound, "self_fly"},
		"original name": {"self.set_volume", `{"volume":1}`, mcp.ActionTypeNotFound, "no tool named"},
		"broken schema": {"self_odd", `{"a":1}`, mcp.ActionTypeReqLLM, `{"a":1}`},
		"null":          {"self_odd", `null`, mcp.ActionTypeReqLLM, `{}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, refused := b.Prepare(mcp.Call{ID: "c", Name: test.name, Arguments: test.arguments})
			if refused == nil {
				got, _ := json.Marshal(p.Arguments)
				if test.want != mcp.ActionTypeReqLLM || string(got) != test.text {
					t.Errorf("prepared with %s", got)
				}
				return
			}
			if refused.Action != test.want || !strings.Contains(mcp.ResultText(*refused), test.text) {
				t.Errorf("refused with %+v, want %v with %q", *refused, test.want, test.text)
			}
		})
	}
	if n := strings.Count(log.String(), "schema is broken"); n != 1 {
		t.Errorf("the broken schema was logged %d times", n)
	}
}

func BenchmarkOffers(b *testing.B) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("self.thing_%d.set_value", i))
	}
	box := New(Options{}, source("device", names...), source("local", "exit", "get_current_time"))
	defer box.Close()
	b.ReportAllocs()
	for b.Loop() {
		box.Offers()
	}
}

func BenchmarkRun(b *testing.B) {
	device := source("device", "self.set_volume")
	device.tools[0].Schema = json.RawMessage(volumeSchema)
	box := New(Options{}, device)
	defer box.Close()
	b.ReportAllocs()
	for b.Loop() {
		p, _ := box.Prepare(mcp.Call{Name: "self_set_volume", Arguments: `{"volume":"55"}`})
		box.Run(b.Context(), p)
	}
}

// grouped is a source made of others that change.
type grouped struct {
	mcp.Source
	parts []mcp.Source
}

func (g *grouped) Sources() []mcp.Source { return slices.Clone(g.parts) }

// TestGroup: a router sees the parts of a group as they are now, by their own names.
func TestGroup(t *testing.T) {
	a, b := source("external:a", "x", "y"), source("external:b", "x")
	g := &grouped{Source: source("external:g", "never"), parts: []mcp.Source{a}}
	box := New(Options{Rules: Rules{Deny: []string{"y"}}}, g)
	defer box.Close()
	shown := func() string {
		var out []string
		for _, o := range box.Offers() {
			out = append(out, o.LLMName+"="+o.Tool.Source)
		}
		return strings.Join(out, " ")
	}
	if got := shown(); got != "x=external:a" {
		t.Error(got)
	}
	g.parts = append(g.parts, b)
	if got := shown(); got != "x=external:a x_2=external:b" {
		t.Error(got)
	}
	g.parts = g.parts[1:]
	if got := shown(); got != "x=external:b" {
		t.Error(got)
	}
}

// Other limits count at once, for what is offered and for what is called; a call that was prepared is run.
func TestSetLimits(t *testing.T) {
	b := newRouter(t, Options{Rules: Rules{Deny: []string{"door"}}}, source("local", "lamp", "door"))
	names := func() (all []string) {
		for _, o := range b.Offers() {
			all = append(all, o.LLMName+" "+string(o.Kind)+fmt.Sprint(o.Job, o.Consent))
		}
		return all
	}
	if got := names(); len(got) != 1 || !strings.HasPrefix(got[0], "lamp ") {
		t.Errorf("offered %q", got)
	}
	before := prepare(t, b, "lamp", "{}")
	b.SetLimits(Limits{Rules: Rules{Deny: []string{"lamp"}, Confirm: []string{"door"}}, Kinds: map[string]mcp.Kind{"door": mcp.Query}, Jobs: []string{"door"}})
	if got := names(); !slices.Equal(got, []string{"door " + string(mcp.Query) + fmt.Sprint(true, true)}) {
		t.Errorf("offered %q", got)
	}
	if _, refused := b.Prepare(mcp.Call{ID: "c2", Name: "lamp", Arguments: "{}"}); refused == nil || refused.Action != mcp.ActionTypeNotFound {
		t.Errorf("what is denied now: %+v", refused)
	}
	if r := b.Run(t.Context(), before); r.Result != "lamp" {
		t.Errorf("what was prepared: %+v", r)
	}
}
