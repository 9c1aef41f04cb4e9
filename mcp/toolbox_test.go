package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeSource is a source of functions. Only what a toolbox uses is there.
type fakeSource struct {
	Source
	mu    sync.Mutex
	tools []Tool
	call  func(ctx context.Context, name string, arguments map[string]any) (any, error)
}

func (s *fakeSource) GetAvailableTools() []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Tool(nil), s.tools...)
}

func (s *fakeSource) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	return s.call(ctx, name, arguments)
}

// source makes a source of tools that take anything.
func source(kind string, names ...string) *fakeSource {
	s := &fakeSource{call: func(_ context.Context, name string, _ map[string]any) (any, error) { return name, nil }}
	for _, name := range names {
		s.tools = append(s.tools, Tool{Name: name, Source: kind, Schema: json.RawMessage(emptySchema)})
	}
	return s
}

func toolbox(t *testing.T, o ToolboxOptions, sources ...Source) *Toolbox {
	t.Helper()
	b := NewToolbox(o, sources...)
	t.Cleanup(b.Close)
	return b
}

func prepare(t *testing.T, b *Toolbox, name, arguments string) Prepared {
	t.Helper()
	p, refused := b.Prepare(Call{ID: "c1", Name: name, Arguments: arguments})
	if refused != nil {
		t.Fatalf("Prepare(%s): %+v", name, *refused)
	}
	return p
}

func TestToolboxOffers(t *testing.T) {
	device := source("device", "self.lamp.set", "self.get", "self.reboot", "self.shell.run")
	device.tools[2].Annotations.Audience = []string{"user"}
	other := source("external:home", "get", "exit")
	var log bytes.Buffer
	b := toolbox(t, ToolboxOptions{
		Deny: []string{"self.shell.*", "["}, Kinds: map[string]Kind{"self.get": Control},
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
	if o, ok := b.Lookup("self_get_2"); !ok || o.Tool.Name != "self.get" {
		t.Errorf("Lookup = %+v, %v", o, ok)
	}
	for _, hidden := range []string{"self_reboot", "self_shell_run", "self.get", ""} {
		if _, ok := b.Lookup(hidden); ok {
			t.Errorf("Lookup(%q) found a tool", hidden)
		}
	}
	b.Remove(device)
	b.Add(other) // there already
	b.Add(nil)
	if got := list(); strings.Contains(got, "device") || strings.Count(got, "home") != 2 {
		t.Errorf("after Remove: %s", got)
	}
	b.Add(device)
	if got := list(); got != want {
		t.Errorf("after coming back: %s", got)
	}
}

func TestPrepare(t *testing.T) {
	device := source("device", "self.set_volume", "self.odd")
	device.tools[0].Schema = json.RawMessage(lampSchema)
	device.tools[1].Schema = json.RawMessage(`{"$ref":"#"}`)
	var log bytes.Buffer
	b := toolbox(t, ToolboxOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}, device)
	tests := map[string]struct {
		name, arguments string
		want            Action // of the refusal; ReqLLM for none
		text            string
	}{
		"repaired":      {"self_set_volume", `{"volume":"55"}`, ActionTypeReqLLM, `{"volume":55}`},
		"missing":       {"self_set_volume", ``, ActionTypeError, "volume"},
		"too large":     {"self_set_volume", `{"volume":101}`, ActionTypeError, `argument "volume": maximum: 101`},
		"broken JSON":   {"self_set_volume", `{`, ActionTypeError, "no JSON object"},
		"unknown tool":  {"self_fly", `{}`, ActionTypeNotFound, "self_fly"},
		"original name": {"self.set_volume", `{"volume":1}`, ActionTypeNotFound, "no tool named"},
		"broken schema": {"self_odd", `{"a":1}`, ActionTypeReqLLM, `{"a":1}`},
		"null":          {"self_odd", `null`, ActionTypeReqLLM, `{}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, refused := b.Prepare(Call{ID: "c", Name: test.name, Arguments: test.arguments})
			if refused == nil {
				got, _ := json.Marshal(p.Arguments)
				if test.want != ActionTypeReqLLM || string(got) != test.text {
					t.Errorf("prepared with %s", got)
				}
				return
			}
			if refused.Action != test.want || !strings.Contains(ResultText(*refused), test.text) {
				t.Errorf("refused with %+v, want %v with %q", *refused, test.want, test.text)
			}
		})
	}
	if n := strings.Count(log.String(), "schema is broken"); n != 1 {
		t.Errorf("the broken schema was logged %d times", n)
	}
}

func TestRunOutcomes(t *testing.T) {
	long := strings.Repeat("长", 10<<10)
	tests := map[string]struct {
		source string
		name   string
		result any
		err    error
		want   ActionResponse
	}{
		"text":               {"device", "get", "21", nil, ActionResponse{Action: ActionTypeReqLLM, Result: "21"}},
		"nil":                {"local", "get", nil, nil, ActionResponse{Action: ActionTypeReqLLM}},
		"a number":           {"local", "get", 7, nil, ActionResponse{Action: ActionTypeReqLLM, Result: 7}},
		"an ActionResponse":  {"local", "get", ActionResponse{Action: ActionTypeResponse, Response: "hi"}, nil, ActionResponse{Action: ActionTypeResponse, Response: "hi"}},
		"a pointer to one":   {"local", "get", &ActionResponse{Action: ActionTypeNone}, nil, ActionResponse{Action: ActionTypeNone}},
		"a nil pointer":      {"local", "get", (*ActionResponse)(nil), nil, ActionResponse{Action: ActionTypeError, Result: "tool call failed: get: the tool returned nothing"}},
		"a tool's error":     {"device", "get", nil, &ToolError{Message: "Unknown theme"}, ActionResponse{Action: ActionTypeError, Result: "tool call failed: get: Unknown theme"}},
		"no reason":          {"device", "get", nil, &ToolError{}, ActionResponse{Action: ActionTypeError, Result: "tool call failed: get: the tool failed and gave no reason"}},
		"the tool is gone":   {"device", "get", nil, fmt.Errorf("call get: %w", ErrNoTool), ActionResponse{Action: ActionTypeNotFound, Result: "tool call failed: get: no such tool"}},
		"the device is gone": {"device", "get", nil, fmt.Errorf("call get: %w", ErrClosed), ActionResponse{Action: ActionTypeError, Result: "tool call failed: get: tool source closed"}},
		"refused control":    {"device", "set_theme", "false", nil, ActionResponse{Action: ActionTypeError, Result: "tool call failed: set_theme: the device refused"}},
		"false of a query":   {"device", "get_lamp", "false", nil, ActionResponse{Action: ActionTypeReqLLM, Result: "false"}},
		"false of a local":   {"local", "set_lamp", "false", nil, ActionResponse{Action: ActionTypeReqLLM, Result: "false"}},
		"a long text":        {"device", "get", long, nil, ActionResponse{Action: ActionTypeReqLLM, Result: cutText(long, 16<<10)}},
		"a long object":      {"local", "get", map[string]string{"a": long}, nil, ActionResponse{Action: ActionTypeReqLLM, Result: cutText(`{"a":"`+long+`"}`, 16<<10)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := source(test.source, test.name)
			s.call = func(context.Context, string, map[string]any) (any, error) { return test.result, test.err }
			b := toolbox(t, ToolboxOptions{}, s)
			if got := b.Run(t.Context(), prepare(t, b, test.name, "")); got != test.want {
				t.Errorf("got %.200v, want %.200v", got, test.want)
			}
		})
	}
}

func TestRunPanics(t *testing.T) {
	s := source("local", "boom")
	s.call = func(context.Context, string, map[string]any) (any, error) { panic("oh") }
	var log bytes.Buffer
	b := toolbox(t, ToolboxOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}, s)
	zh := WithInfo(t.Context(), Info{Language: "zh"})
	for range 2 {
		got := b.Run(zh, prepare(t, b, "boom", ""))
		if got.Action != ActionTypeError || got.Result != "MCP工具调用失败: boom: the tool crashed" {
			t.Errorf("got %+v", got)
		}
	}
	if !strings.Contains(log.String(), "panic=oh") || !strings.Contains(log.String(), "toolbox_test.go") {
		t.Errorf("log: %s", log.String())
	}
}

func TestRunUnprepared(t *testing.T) {
	b := toolbox(t, ToolboxOptions{})
	if got := b.Run(t.Context(), Prepared{}); got.Action != ActionTypeError {
		t.Errorf("got %+v", got)
	}
	if err := b.Go(Prepared{}, func(ActionResponse) { t.Error("done was called") }); err == nil {
		t.Error("Go: no error")
	}
}

// busy is a device whose tools take a time, and which notes what it does.
type busy struct {
	*fakeSource
	mu   sync.Mutex
	did  []string
	now  int
	most int
}

func newBusy(took time.Duration, kind string, names ...string) *busy {
	d := &busy{fakeSource: source(kind, names...)}
	d.call = func(ctx context.Context, name string, _ map[string]any) (any, error) {
		d.mu.Lock()
		d.now++
		d.most = max(d.most, d.now)
		d.did = append(d.did, name)
		d.mu.Unlock()
		defer func() {
			d.mu.Lock()
			d.now--
			d.mu.Unlock()
		}()
		select {
		case <-time.After(took):
			return name, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("call %s: %w", name, ctx.Err())
		}
	}
	return d
}

func (d *busy) done() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.did, " ")
}

// TestOneAtATime: a device's calls go one after the other in the order of their
// coming, other tools beside them, and each one's time counts from its sending.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device, local := newBusy(10*time.Second, "device", "a", "b", "c"), newBusy(10*time.Second, "local", "x", "y")
		b := toolbox(t, ToolboxOptions{}, device, local)
		began := time.Now()
		took := make(chan string, 5)
		for _, name := range []string{"a", "b", "c", "x", "y"} {
			p := prepare(t, b, name, "")
			if err := b.Go(p, func(r ActionResponse) {
				took <- fmt.Sprintf("%v %v", r.Result, time.Since(began))
			}); err != nil {
				t.Fatal(err)
			}
		}
		got := make(map[string]bool)
		for range 5 {
			got[<-took] = true
		}
		for _, want := range []string{"a 10s", "b 20s", "c 30s", "x 10s", "y 10s"} {
			if !got[want] {
				t.Errorf("%q is not among %v", want, got)
			}
		}
		if device.done() != "a b c" || device.most != 1 || local.most != 2 {
			t.Errorf("the device did %q, %d at once, local %d at once", device.done(), device.most, local.most)
		}
	})
}

func TestTimeouts(t *testing.T) {
	tests := map[string]struct {
		source, name string
		want         time.Duration
	}{
		"a device's tool":   {"device", "self.get", 15 * time.Second},
		"a camera":          {"device", "self.camera.take_photo", time.Minute},
		"a screen picture":  {"device", "self.screen.snapshot", time.Minute},
		"a preview":         {"device", "self.screen.preview_image", time.Minute},
		"the screen itself": {"device", "self.screen.get_info", 15 * time.Second},
		"a local tool":      {"local", "get", 15 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newBusy(time.Hour, test.source, test.name)
				b := toolbox(t, ToolboxOptions{}, d)
				p := prepare(t, b, legalName(test.name), "")
				for range 2 { // the place is free again
					began := time.Now()
					r := b.Run(t.Context(), p)
					if took := time.Since(began); took != test.want || r.Action != ActionTypeError ||
						!strings.Contains(ResultText(r), "no answer in time") {
						t.Errorf("%+v after %v, want %v", r, took, test.want)
					}
				}
			})
		})
	}
}

// TestDeafTool: a tool that does not heed its context holds up nobody but Close.
func TestDeafTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source("device", "deaf", "quick")
		s.call = func(_ context.Context, name string, _ map[string]any) (any, error) {
			if name == "deaf" {
				<-time.After(time.Hour)
			}
			return name, nil
		}
		b := toolbox(t, ToolboxOptions{}, s)
		began := time.Now()
		if r := b.Run(t.Context(), prepare(t, b, "deaf", "")); r.Action != ActionTypeError || time.Since(began) != 15*time.Second {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
		if r := b.Run(t.Context(), prepare(t, b, "quick", "")); r.Result != "quick" {
			t.Errorf("the next call: %+v", r)
		}
	})
}

// TestCallerGivesUp: the caller returns at once; a device that is at work stays
// busy until it is done, a call that waits is never sent, a local one is cancelled.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device, local := newBusy(10*time.Second, "device", "a", "b", "c"), newBusy(10*time.Second, "local", "x")
		b := toolbox(t, ToolboxOptions{}, device, local)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "x"} {
			p := prepare(t, b, name, "")
			wg.Go(func() {
				r := b.Run(ctx, p)
				if r.Action != ActionTypeError || !strings.Contains(ResultText(r), "given up") || time.Since(began) != 2*time.Second {
					t.Errorf("%s: %+v after %v", name, r, time.Since(began))
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		synctest.Wait()
		if local.now != 0 || device.now != 1 {
			t.Errorf("%d local and %d device calls are running", local.now, device.now)
		}
		if r := b.Run(t.Context(), prepare(t, b, "c", "")); r.Result != "c" || time.Since(began) != 20*time.Second {
			t.Errorf("c: %+v after %v, want 20s", r, time.Since(began))
		}
		if device.done() != "a c" {
			t.Errorf("the device did %q, want a and c", device.done())
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBusy(time.Second, "device", "a")
		b := toolbox(t, ToolboxOptions{}, d)
		done := 0
		var mu sync.Mutex
		send := func(i int) error {
			return b.Go(prepare(t, b, "a", fmt.Sprintf(`{"i":%d}`, i)), func(ActionResponse) {
				mu.Lock()
				done++
				mu.Unlock()
			})
		}
		for i := range 17 { // one is running, 16 wait
			if err := send(i); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		if err := send(17); !errors.Is(err, errFull) {
			t.Errorf("Go over the limit: %v", err)
		}
		if r := b.Run(t.Context(), prepare(t, b, "a", `{"i":18}`)); r.Action != ActionTypeError || !strings.Contains(ResultText(r), "too many calls") {
			t.Errorf("Run over the limit: %+v", r)
		}
		pass(17 * time.Second)
		if done != 17 {
			t.Errorf("%d calls done, want 17", done)
		}
		if err := send(19); err != nil {
			t.Errorf("after the queue is empty: %v", err)
		}
	})
}

func TestSameCallTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBusy(time.Second, "device", "a")
		b := toolbox(t, ToolboxOptions{}, d)
		p := prepare(t, b, "a", `{"x":1,"y":2}`)
		if err := b.Go(p, func(ActionResponse) {}); err != nil {
			t.Fatal(err)
		}
		if r := b.Run(t.Context(), prepare(t, b, "a", `{"y":2,"x":1}`)); r.Action != ActionTypeError || !strings.Contains(ResultText(r), "still running") {
			t.Errorf("the same call: %+v", r)
		}
		if r := b.Run(t.Context(), prepare(t, b, "a", `{"x":2,"y":2}`)); r.Action != ActionTypeReqLLM {
			t.Errorf("another call: %+v", r)
		}
		if r := b.Run(t.Context(), p); r.Action != ActionTypeReqLLM {
			t.Errorf("the same call later: %+v", r)
		}
	})
}

// TestCloseEndsAll: what runs and what waits ends at once, and is told of once.
func TestCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBusy(time.Hour, "device", "a", "b", "c")
		b := NewToolbox(ToolboxOptions{}, d)
		outcomes := make(chan ActionResponse, 10)
		for _, name := range []string{"a", "b"} {
			if err := b.Go(prepare(t, b, name, ""), func(r ActionResponse) { outcomes <- r }); err != nil {
				t.Fatal(err)
			}
		}
		last := prepare(t, b, "c", "")
		go func() { outcomes <- b.Run(t.Context(), last) }()
		synctest.Wait()
		began := time.Now()
		b.Close()
		b.Close()
		synctest.Wait()
		if len(outcomes) != 3 || time.Since(began) != 0 || d.done() != "a" {
			t.Errorf("%d outcomes after %v; the device did %q", len(outcomes), time.Since(began), d.done())
		}
		for range 3 {
			if r := <-outcomes; r.Action != ActionTypeError || !strings.Contains(ResultText(r), "ending the connection") {
				t.Errorf("outcome %+v", r)
			}
		}
		if err := b.Go(last, func(ActionResponse) {}); !errors.Is(err, errClosing) {
			t.Errorf("Go after Close: %v", err)
		}
		if r := b.Run(t.Context(), last); r.Action != ActionTypeError {
			t.Errorf("Run after Close: %+v", r)
		}
	})
}

func TestInfoReachesTools(t *testing.T) {
	s := source("device", "a")
	var got []Info
	var mu sync.Mutex
	s.call = func(ctx context.Context, _ string, _ map[string]any) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, InfoFrom(ctx))
		return nil, nil
	}
	b := NewToolbox(ToolboxOptions{}, s)
	info := Info{DeviceID: "aa:bb", Language: "en", Zone: time.UTC}
	p := prepare(t, b, "a", "")
	b.Run(WithInfo(t.Context(), info), p)
	p.Info = info
	done := make(chan struct{})
	if err := b.Go(p, func(ActionResponse) { close(done) }); err != nil {
		t.Fatal(err)
	}
	<-done
	b.Close()
	if len(got) != 2 || got[0] != info || got[1] != info {
		t.Errorf("tools saw %+v", got)
	}
}

func TestCallLeavesOneLine(t *testing.T) {
	var log bytes.Buffer
	b := NewToolbox(ToolboxOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}, source("device", "self.set_lamp"))
	b.Run(t.Context(), prepare(t, b, "self_set_lamp", ""))
	b.Close()
	got := log.String()
	for _, want := range []string{"tool=self.set_lamp", "kind=control", "source=device", "call_id=c1", "action=req_llm", "took=", "size=13"} {
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("log %q, want one line with %s", got, want)
		}
	}
}

type panicky struct{}

func (panicky) MarshalJSON() ([]byte, error) { panic("no") }

func TestResultText(t *testing.T) {
	tests := map[string]struct {
		response ActionResponse
		want     string
	}{
		"nothing":           {ActionResponse{}, ""},
		"text":              {ActionResponse{Result: "a"}, "a"},
		"only a response":   {ActionResponse{Response: "b"}, "b"},
		"an object":         {ActionResponse{Result: map[string]any{"a": 1}}, `{"a":1}`},
		"a number":          {ActionResponse{Result: 1.5}, "1.5"},
		"a boolean":         {ActionResponse{Result: false}, "false"},
		"an error":          {ActionResponse{Result: errors.New("e")}, "e"},
		"raw JSON":          {ActionResponse{Result: json.RawMessage(`[1]`)}, "[1]"},
		"a call":            {ActionResponse{Result: ActionResponseCall{FuncName: "f"}}, `{"funcName":"f","args":null}`},
		"an image":          {ActionResponse{Result: Image{"image/png", []byte{1, 2}}}, "[image/png image, 2 bytes]"},
		"text and an image": {ActionResponse{Result: []any{"a", Image{"image/png", nil}}}, "a\n[image/png image, 0 bytes]"},
		"a list":            {ActionResponse{Result: []any{"a", 1}}, `["a",1]`},
		"a channel":         {ActionResponse{Result: make(chan int)}, "[chan int]"},
		"no number":         {ActionResponse{Result: math.NaN()}, "[float64]"},
		"a payload's panic": {ActionResponse{Result: panicky{}}, "[mcp.panicky]"},
		"a nil pointer":     {ActionResponse{Result: (*ToolError)(nil)}, "[*mcp.ToolError]"},
	}
	for name, test := range tests {
		if got := ResultText(test.response); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestCutText(t *testing.T) {
	for _, text := range []string{strings.Repeat("长", 100), strings.Repeat("a", 300), strings.Repeat("\xff", 300), "short"} {
		for limit := 40; limit < 120; limit++ {
			got := cutText(text, limit)
			if len(got) > limit || (len(text) <= limit) != (got == text) {
				t.Errorf("cutText(%d bytes, %d) has %d bytes", len(text), limit, len(got))
			}
			if strings.HasPrefix(text, "长") && strings.ContainsRune(got, '\uFFFD') {
				t.Errorf("cut inside a rune: %q", got)
			}
			if got != text && !strings.HasSuffix(got, "bytes in all]") {
				t.Errorf("no marker: %q", got)
			}
		}
	}
}

func TestCutBlocks(t *testing.T) {
	image := Image{"image/png", make([]byte, 100)}
	s := source("device", "get")
	s.call = func(context.Context, string, map[string]any) (any, error) {
		return []any{strings.Repeat("a", 80), image, strings.Repeat("b", 80), "c"}, nil
	}
	b := toolbox(t, ToolboxOptions{MaxResult: 100}, s)
	got, ok := b.Run(t.Context(), prepare(t, b, "get", "")).Result.([]any)
	if !ok || len(got) != 3 || got[0] != strings.Repeat("a", 80) || !strings.Contains(got[2].(string), "cut") {
		t.Fatalf("got %.300v", got)
	}
	if kept, ok := got[1].(Image); !ok || len(kept.Data) != 100 {
		t.Errorf("the picture became %v", got[1])
	}
}

func BenchmarkOffers(b *testing.B) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("self.thing_%d.set_value", i))
	}
	box := NewToolbox(ToolboxOptions{}, source("device", names...), source("local", "exit", "get_current_time"))
	defer box.Close()
	b.ReportAllocs()
	for b.Loop() {
		box.Offers()
	}
}

func BenchmarkRun(b *testing.B) {
	device := source("device", "self.set_volume")
	device.tools[0].Schema = json.RawMessage(lampSchema)
	box := NewToolbox(ToolboxOptions{}, device)
	defer box.Close()
	b.ReportAllocs()
	for b.Loop() {
		p, _ := box.Prepare(Call{Name: "self_set_volume", Arguments: `{"volume":"55"}`})
		box.Run(b.Context(), p)
	}
}
