package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"

	"xiaozhi/mcp/router"
)

// shop is a registry with its views.
type shop struct {
	*Registry
	*Views
	runner *Runner
	log    strings.Builder
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{Registry: NewRegistry(router.Gate{})}
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	s.runner = NewRunner(router.Gate{}, func() *time.Location { return time.UTC }, log)
	s.Views = NewViews(s.Registry, s.runner, "test", log)
	t.Cleanup(s.Close)
	return s
}

// see returns the names of the tools that a caller sees of a stream.
func (s *shop) see(t *testing.T, c Caller, stream string) []string {
	t.Helper()
	v, ok := s.Of(c, stream)
	if !ok {
		return nil
	}
	var names []string
	for _, e := range v.Tools() {
		names = append(names, e.Name())
	}
	return names
}

// says returns a tool that answers with a text.
func says(stream, name, text string) Tool {
	return Tool{Stream: stream, Name: name, Run: func(context.Context, map[string]any) (any, error) { return text, nil }}
}

// run runs a tool as a caller and returns its text.
func (s *shop) run(t *testing.T, c Caller, name string) (string, error) {
	t.Helper()
	v, _ := s.Of(c, "")
	e, ok := v.Tool(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	r, err := s.runner.Run(WithCaller(t.Context(), c), e, nil, nil)
	if err != nil {
		return "", err
	}
	if len(r.Content) == 0 {
		return "", nil
	}
	return r.Content[0].(*sdk.TextContent).Text, nil
}

// token returns a caller with a token.
func token(name string, readOnly bool, streams ...string) Caller {
	return Caller{Token: &Token{Name: name, ReadOnly: readOnly, Streams: streams}, Language: "en"}
}

func TestRegistryNames(t *testing.T) {
	s := newShop(t)
	core, files := &Part{}, &Part{}
	if err := errors.Join(core.AddTool(says("a", "x", "core")), files.AddTool(says("a", "x", "file")), files.AddTool(says("a", "y", "file"))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Add(says("a", "x", "hand")), s.Add(says("b", "z", "one")), s.Add(says("b", "z", "two"))); err != nil {
		t.Fatal(err)
	}
	s.Set(PartFiles, files)
	s.Set(PartCore, core)
	me := Caller{Owner: true, Language: "en"}
	for name, want := range map[string]string{"a.x": "core", "a.y": "file", "b.z": "two"} {
		if got, err := s.run(t, me, name); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	s.Remove("b.z", "a.x")
	s.SetChanged(map[string]*Part{PartCore: nil, "none": nil})
	if got := s.see(t, me, ""); !slices.Equal(got, []string{"a.x", "a.y"}) {
		t.Errorf("tools %v", got)
	}
	if got, _ := s.run(t, me, "a.x"); got != "file" {
		t.Errorf("without the first of the name: %q", got)
	}
	if got := s.Streams(me); !slices.Equal(got, []string{"a"}) || s.Tools() != 2 {
		t.Errorf("streams %v, %d tools", got, s.Tools())
	}
}

func TestViewsOfTokens(t *testing.T) {
	s := newShop(t)
	for _, tool := range []Tool{says("", "bare", ""), says("home", "lamp", ""), says("device-a", "x", ""), says("device-b", "x", "")} {
		if err := s.Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		caller Caller
		stream string
		want   []string
	}{
		{Caller{Owner: true}, "", []string{"bare", "device-a.x", "device-b.x", "home.lamp"}},
		{Caller{Owner: true}, "home", []string{"home.lamp"}},
		{Caller{Owner: true}, "none", nil},
		{token("all", false), "", []string{"bare", "device-a.x", "device-b.x", "home.lamp"}},
		{token("devices", false, "device-*"), "", []string{"device-a.x", "device-b.x"}},
		{token("one", false, "device-a"), "device-a", []string{"device-a.x"}},
		{token("one", false, "device-a"), "device-b", nil},
	} {
		if got := s.see(t, test.caller, test.stream); !slices.Equal(got, test.want) {
			t.Errorf("%s, %q: %v, want %v", test.caller.Name(), test.stream, got, test.want)
		}
	}
	one := token("one", false, "device-a")
	if !one.Reaches("a") || one.Reaches("b") || one.Shows("b") || !token("home", false, "home").Reaches("b") || token("home", false, "home").Shows("b") {
		t.Error("the token of one device reaches another, or one without devices reaches none")
	}
	v, _ := s.Of(Caller{Owner: true}, "home")
	if e, ok := v.Tool("lamp"); !ok || e.Name() != "home.lamp" {
		t.Error("a view of one stream does not know bare names")
	}
	s.Remove("home.lamp")
	if kept, ok := s.Kept(Caller{Owner: true}, "home"); !ok || kept != v {
		t.Error("a view was not kept while its stream is away")
	}
	if _, ok := s.Of(Caller{Owner: true}, "home"); ok {
		t.Error("a view of a stream that is gone")
	}
	before := len(s.byKey)
	if s.Sweep(); len(s.byKey) != before-1 {
		t.Errorf("%d views after %d", len(s.byKey), before)
	}
}

func TestViewAsk(t *testing.T) {
	s := newShop(t)
	if err := s.Add(Tool{Name: "strict", Schema: json.RawMessage(`{"type":"object","required":["a"]}`), Run: says("", "", "").Run}); err != nil {
		t.Fatal(err)
	}
	v, _ := s.Of(Caller{Owner: true}, "")
	ask := func(version, method, params string) string {
		a, err := v.Ask(t.Context(), Caller{Owner: true, Language: "en"}, version, http.Header{}, &jsonrpc.Request{Method: method, Params: json.RawMessage(params)})
		if err != nil {
			t.Fatal(err)
		}
		if wire, ok := errors.AsType[*jsonrpc.Error](a.Error); ok {
			return wire.Message + " " + string(wire.Data)
		}
		return string(a.Result)
	}
	for _, test := range []struct{ version, method, params, want string }{
		{Version2024, "tools/call", `{"name":"strict"}`, `invalid arguments: strict: `},
		{Version2025, "tools/call", `{"name":"strict"}`, `"isError":true`},
		{Version2024, "tools/call", `{"name":"strict","arguments":{"a":1}}`, `"executionTime"`},
		{Version2024, "tools/call", `{"name":"none"}`, `tool not found: none`},
		{Version2024, "resources/read", `{"uri":"x://y"}`, `resource not found: x://y {"uri":"x://y"}`},
		{Version2024, "prompts/get", `{"name":"none"}`, `prompt not found: none`},
		{Version2024, "logging/setLevel", `{"level":"loud"}`, `unknown level: loud`},
		{Version2024, "completion/complete", `{"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"a","value":""}}`, `prompt not found: none`},
	} {
		if got := ask(test.version, test.method, test.params); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %s, want %s", test.method, test.params, got, test.want)
		}
	}
	if n := len(slices.Collect(v.server.Sessions())); n != 2 {
		t.Errorf("%d sessions for two revisions", n)
	}
}

func TestRunnerRefusals(t *testing.T) {
	s := newShop(t)
	yes := true
	looks, acts := says("", "looks", "seen"), says("", "acts", "done")
	looks.Annotations = mcp.Annotations{ReadOnly: &yes}
	claims := looks
	claims.Name, claims.Foreign = "claims", true
	crash := Tool{Name: "crash", Run: func(context.Context, map[string]any) (any, error) { panic("secret") }}
	for _, tool := range []Tool{looks, acts, claims, crash} {
		if err := s.Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	screen := token("screen", true)
	for name, want := range map[string]error{"looks": nil, "acts": ErrReadOnly, "claims": ErrReadOnly} {
		if _, err := s.run(t, screen, name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if got, err := s.run(t, Caller{Owner: true, Language: "en"}, "crash"); got != "the tool crashed" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	s.runner.Close()
	if _, err := s.run(t, Caller{Owner: true}, "acts"); !errors.Is(err, ErrBusy) {
		t.Errorf("after Close: %v", err)
	}
	for _, word := range []string{"outcome=ok", "outcome=refused", "outcome=failed", "token=screen"} {
		if !strings.Contains(s.log.String(), word) {
			t.Errorf("the log has no %s:\n%s", word, s.log.String())
		}
	}
}

func TestRunnerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		wait := func(ctx context.Context, _ map[string]any) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if err := errors.Join(s.Add(Tool{Name: "slow", Run: wait}), s.Add(Tool{Name: "short", Timeout: time.Second, Run: wait})); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]time.Duration{"slow": CallTimeout, "short": time.Second} {
			began := time.Now()
			if got, _ := s.run(t, Caller{Owner: true, Language: "en"}, name); got != "no answer in time" || time.Since(began) != want {
				t.Errorf("%s: %q after %v", name, got, time.Since(began))
			}
		}
		gone, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		began := time.Now()
		if _, err := s.run(t, Caller{Owner: true, Language: "en"}.Until(gone), "slow"); err != nil || time.Since(began) != time.Second {
			t.Errorf("a caller that left: %v after %v", err, time.Since(began))
		}
	})
}

func TestContentOf(t *testing.T) {
	picture := mcp.Image{MIMEType: "image/png", Data: []byte{1}}
	for name, test := range map[string]struct {
		response mcp.ActionResponse
		blocks   int
		failed   bool
		text     string
	}{
		"none":     {mcp.ActionResponse{Action: mcp.ActionTypeNone, Result: "x"}, 0, false, ""},
		"text":     {mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: "x"}, 1, false, "x"},
		"spoken":   {mcp.ActionResponse{Action: mcp.ActionTypeResponse, Result: "x", Response: "y"}, 1, false, "y"},
		"error":    {mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "x"}, 1, true, "x"},
		"blocks":   {mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: []any{"x", picture}}, 2, false, "x"},
		"envelope": {mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: map[string]any{"success": false, "error": "x"}}, 1, true, `{"error":{"code":"EXECUTION_FAILED","message":"x"},"success":false}`},
	} {
		got := contentOf(test.response)
		if len(got.Content) != test.blocks || got.IsError != test.failed || test.blocks > 0 && got.Content[0].(*sdk.TextContent).Text != test.text {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestVersionOf(t *testing.T) {
	for asked, want := range map[string]string{"": Version2024, Version2024: Version2024, "2025-06-18": "2025-06-18", VersionModern: VersionModern, "2024-10-07": Version2025, "2030-01-01": Version2025} {
		req := &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{}}
		if asked != "" {
			req.Params.Meta = sdk.Meta{sdk.MetaKeyProtocolVersion: asked}
		}
		if got := versionOf(req); got != want {
			t.Errorf("%q: %s, want %s", asked, got, want)
		}
	}
}

func TestTemplateFits(t *testing.T) {
	for uri, want := range map[string]bool{"a://x/data": true, "a://x/y/data": false, "a:///data": false, "a://x/data/": false, "b://x/data": false} {
		if got := templateFits("a://{id}/data", uri); got != want {
			t.Errorf("%s: %v", uri, got)
		}
	}
}

// slowly is a prompt behind which 30 ms pass, as on a busy machine, when it is offered
// and withdrawn.
type slowly struct{ *prompt }

func (x slowly) offer(v *View)          { x.prompt.offer(v); time.Sleep(30 * time.Millisecond) }
func (x slowly) withdraw(s *sdk.Server) { x.prompt.withdraw(s); time.Sleep(30 * time.Millisecond) }
func (x slowly) same(item) bool         { return false }

// TestOneChangeIsToldOnce: what comes or goes together is told in one message, however
// long the server takes to change its lists.
func TestOneChangeIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		v, _ := s.Of(Caller{Owner: true}, "")
		var told atomic.Int32
		client := sdk.NewClient(&sdk.Implementation{Name: "c"}, &sdk.ClientOptions{
			PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) { told.Add(1) },
		})
		near, far := sdk.NewInMemoryTransports()
		if _, err := v.Connect(t.Context(), far, ""); err != nil {
			t.Fatal(err)
		}
		session, err := client.Connect(t.Context(), near, nil)
		if err != nil {
			t.Fatal(err)
		}
		part := &Part{}
		for _, name := range []string{"a", "b", "c", "d"} {
			part.items = append(part.items, slowly{&prompt{place{key{kindPrompt, name}, ""}, &sdk.Prompt{Name: name}, nil, nil, false}})
		}
		for _, p := range []*Part{part, nil} { // they come, they go
			told.Store(0)
			s.SetChanged(map[string]*Part{"device:x": p})
			time.Sleep(time.Second)
			if n := told.Load(); n != 1 {
				t.Errorf("told %d times, want 1", n)
			}
		}
		_ = session.Close()
		v.close()
		synctest.Wait()
	})
}

// TestUnofferable: a tool at which the SDK panics is refused with the reason.
func TestUnofferable(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}`:      "header",
		`{"type":"object","properties":{"a":{"type":"object","x-mcp\u002dheader":"A"}}}`: "header",
		`{"type":"object","maximum":1e999}`:                                              "no JSON object",
	} {
		tool := says("", "bad", "x")
		tool.Schema = json.RawMessage(schema)
		if err := newShop(t).Add(tool); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// TestAddingIsCheap: the tools of other servers are looked at every second.
func TestAddingIsCheap(t *testing.T) {
	tool := Tool{
		Name: "plain", Schema: json.RawMessage(`{"type":"object","properties":{"volume":{"type":"integer"}}}`),
		Do: func(context.Context, Call) Outcome { return Outcome{} },
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := (&Part{}).AddTool(tool); err != nil {
			t.Fatal(err)
		}
	}); n > 50 {
		t.Errorf("%v allocations for a tool", n)
	}
}
