package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

func TestRunPanics(t *testing.T) {
	s := source("local", "boom")
	s.call = func(context.Context, string, map[string]any) (any, error) { panic("oh") }
	var log bytes.Buffer
	b := newRouter(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, s)
	zh := mcp.WithInfo(t.Context(), mcp.Info{Language: "zh"})
	for range 2 {
		got := b.Run(zh, prepare(t, b, "boom", ""))
		if got.Action != mcp.ActionTypeError || got.Result != "MCP工具调用失败: boom: 工具出错了" {
			t.Errorf("got %+v", got)
		}
	}
	if !strings.Contains(log.String(), "panic=oh") || !strings.Contains(log.String(), "router_test.go") {
		t.Errorf("log: %s", log.String())
	}
}

// TestDonePanics: what a caller does with an outcome cannot bring the server down.
func TestDonePanics(t *testing.T) {
	var log bytes.Buffer
	b := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, source("device", "a"))
	called := make(chan struct{})
	err := b.Go(prepare(t, b, "a", ""), func(mcp.ActionResponse) {
		close(called)
		panic("mine")
	})
	if err != nil {
		t.Fatal(err)
	}
	<-called
	b.Close()
	if !strings.Contains(log.String(), "panic=mine") {
		t.Errorf("log: %s", log.String())
	}
}

func TestRunUnprepared(t *testing.T) {
	b := newRouter(t, Options{})
	if got := b.Run(t.Context(), Prepared{}); got.Action != mcp.ActionTypeError {
		t.Errorf("got %+v", got)
	}
	if err := b.Go(Prepared{}, func(mcp.ActionResponse) { t.Error("done was called") }); err == nil {
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

func (d *busy) running() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
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
		b := newRouter(t, Options{}, device, local)
		began := time.Now()
		took := make(chan string, 5)
		for _, name := range []string{"a", "b", "c", "x", "y"} {
			p := prepare(t, b, name, "")
			if err := b.Go(p, func(r mcp.ActionResponse) {
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
				b := newRouter(t, Options{}, d)
				p := prepare(t, b, mcp.FunctionName(test.name), "")
				for range 2 { // the place is free again
					began := time.Now()
					r := b.Run(t.Context(), p)
					if took := time.Since(began); took != test.want || r.Action != mcp.ActionTypeError ||
						!strings.Contains(mcp.ResultText(r), "no answer in time") {
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
		b := newRouter(t, Options{}, s)
		began := time.Now()
		if r := b.Run(t.Context(), prepare(t, b, "deaf", "")); r.Action != mcp.ActionTypeError || time.Since(began) != 15*time.Second {
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
		b := newRouter(t, Options{}, device, local)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "x"} {
			p := prepare(t, b, name, "")
			wg.Go(func() {
				r := b.Run(ctx, p)
				if r.Action != mcp.ActionTypeError || !strings.Contains(mcp.ResultText(r), "given up") || time.Since(began) != 2*time.Second {
					t.Errorf("%s: %+v after %v", name, r, time.Since(began))
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		synctest.Wait()
		if l, d := local.running(), device.running(); l != 0 || d != 1 {
			t.Errorf("%d local and %d device calls are running", l, d)
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
		b := newRouter(t, Options{}, d)
		done := 0
		var mu sync.Mutex
		send := func(i int) error {
			return b.Go(prepare(t, b, "a", fmt.Sprintf(`{"i":%d}`, i)), func(mcp.ActionResponse) {
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
		if r := b.Run(t.Context(), prepare(t, b, "a", `{"i":18}`)); r.Action != mcp.ActionTypeError || !strings.Contains(mcp.ResultText(r), "too many calls") {
			t.Errorf("Run over the limit: %+v", r)
		}
		time.Sleep(17 * time.Second)
		synctest.Wait()
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
		b := newRouter(t, Options{}, d)
		p := prepare(t, b, "a", `{"x":1,"y":2}`)
		if err := b.Go(p, func(mcp.ActionResponse) {}); err != nil {
			t.Fatal(err)
		}
		if r := b.Run(t.Context(), prepare(t, b, "a", `{"y":2,"x":1}`)); r.Action != mcp.ActionTypeError || !strings.Contains(mcp.ResultText(r), "still running") {
			t.Errorf("the same call: %+v", r)
		}
		if r := b.Run(t.Context(), prepare(t, b, "a", `{"x":2,"y":2}`)); r.Action != mcp.ActionTypeReqLLM {
			t.Errorf("another call: %+v", r)
		}
		if r := b.Run(t.Context(), p); r.Action != mcp.ActionTypeReqLLM {
			t.Errorf("the same call later: %+v", r)
		}
	})
}

// TestCloseEndsAll: what runs and what waits ends at once, and is told of once.
func TestCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBusy(time.Hour, "device", "a", "b", "c")
		b := New(Options{}, d)
		outcomes := make(chan mcp.ActionResponse, 10)
		for _, name := range []string{"a", "b"} {
			if err := b.Go(prepare(t, b, name, ""), func(r mcp.ActionResponse) { outcomes <- r }); err != nil {
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
			if r := <-outcomes; r.Action != mcp.ActionTypeError || !strings.Contains(mcp.ResultText(r), "ending the connection") {
				t.Errorf("outcome %+v", r)
			}
		}
		if err := b.Go(last, func(mcp.ActionResponse) {}); !errors.Is(err, errClosing) {
			t.Errorf("Go after Close: %v", err)
		}
		if r := b.Run(t.Context(), last); r.Action != mcp.ActionTypeError {
			t.Errorf("Run after Close: %+v", r)
		}
	})
}

func TestInfoReachesTools(t *testing.T) {
	s := source("device", "a")
	var got []mcp.Info
	var mu sync.Mutex
	s.call = func(ctx context.Context, _ string, _ map[string]any) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, mcp.InfoFrom(ctx))
		return nil, nil
	}
	b := New(Options{}, s)
	info := mcp.Info{DeviceID: "aa:bb", Language: "en", Zone: time.UTC}
	p := prepare(t, b, "a", "")
	b.Run(mcp.WithInfo(t.Context(), info), p)
	p.Info = info
	done := make(chan struct{})
	if err := b.Go(p, func(mcp.ActionResponse) { close(done) }); err != nil {
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
	b := New(Options{Words: true, Log: slog.New(slog.NewTextHandler(&log, nil))}, source("device", "self.set_lamp")) // no result: it may hold words
	b.Run(t.Context(), prepare(t, b, "self_set_lamp", ""))
	b.Close()
	got := log.String()
	for _, want := range []string{
		"tool=self.set_lamp", "kind=control", "source=device", "call_id=c1", "arguments={}", "action=req_llm",
		"awaited=true", "late_failure=false", "started=20", "took=", "size=13",
	} {
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("log %q, want one line with %s", got, want)
		}
	}
	if strings.Contains(got, "result") {
		t.Errorf("log %q shows the result", got)
	}
}

func TestResultSummary(t *testing.T) {
	long := strings.Repeat("x", 500)
	for in, want := range map[string]string{
		"":                               "",
		"87":                             "87",
		`{"volume":30,"token":"t-123"}`:  `{"token":"***","volume":30}`,
		`[{"wifi":{"password":"open"}}]`: `[{"wifi":{"password":"***"}}]`,
		`{"broken`:                       `{"broken`,
		long:                             text.Shorten(long, maxResultSummary),
	} {
		if got := resultSummary(in, maxResultSummary); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Calls from outside wait behind all those of the conversation, however long
// they have been there, have a queue of their own, and may be equal.
func TestOutsideCallsComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBusy(time.Second, "device", "mine", "theirs")
		b := newRouter(t, Options{}, d)
		b.device.limit = 2
		var wg sync.WaitGroup
		run := func(name, arguments string, by mcp.Asker, want string) {
			p, bad := b.Prepare(mcp.Call{ID: "c", Name: name, Arguments: arguments, By: by})
			if bad != nil {
				t.Fatalf("%+v", bad)
			}
			wg.Go(func() {
				if got := mcp.ResultText(b.Run(t.Context(), p)); !strings.Contains(got, want) {
					t.Errorf("%s %s: %s, want %s", name, arguments, got, want)
				}
			})
			synctest.Wait()
		}
		for range 1 + 2*outsideShare { // one is running
			run("theirs", "{}", mcp.ByOutside, "theirs")
		}
		run("theirs", "{}", mcp.ByOutside, "too many calls")
		run("mine", `{"i":1}`, mcp.ByModel, "mine")
		run("mine", `{"i":1}`, mcp.ByModel, "still running")
		run("mine", `{"i":2}`, mcp.ByModel, "mine")
		run("mine", `{"i":3}`, mcp.ByModel, "too many calls")
		wg.Wait()
		if want := "theirs mine mine" + strings.Repeat(" theirs", 2*outsideShare); d.done() != want {
			t.Errorf("the device did %q, want %q", d.done(), want)
		}
	})
}
