package offer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// told notes the resources that clients were told of.
type told struct {
	mu   sync.Mutex
	uris []string
}

func (x *told) updated(_ context.Context, uris ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.uris = append(x.uris, uris...)
}

func (x *told) take() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	uris := x.uris
	x.uris = nil
	return uris
}

// names returns the names of the tools of a registry.
func names(r *catalog.Registry) []string {
	var out []string
	for _, e := range viewOf(r).Tools() {
		out = append(out, e.Name())
	}
	return out
}

// run has a follower follow until stop, which waits for it.
func run(t *testing.T, f *Follower) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

func TestFollowerDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, r, said := &home{}, catalog.NewRegistry(router.Gate{}), &told{}
		h.set("a")
		f := NewFollower(r, Options{Devices: h, Zone: utc, Log: slog.New(slog.DiscardHandler)}, said.updated)
		defer run(t, f)()
		f.DeviceChanged("a")
		time.Sleep(time.Second)
		if got := names(r); len(got) > 0 {
			t.Errorf("before anybody asked: %v", got)
		}
		all := func(string) bool { return true }
		parts := f.Asleep(all)
		if len(parts) != 1 {
			t.Fatalf("asleep: %v", parts)
		}
		if tools, _ := parts["device-a"].Len(); tools != 1 {
			t.Errorf("asleep: %d tools", tools)
		}
		f.Wake()
		if got := names(r); !slices.Equal(got, []string{"device-a.self.wave"}) || f.Asleep(all) != nil {
			t.Errorf("once asked: %v", got)
		}
		h.set("a", "b")
		f.DeviceChanged("b")
		f.TranscriptChanged("a")
		time.Sleep(settleLimit)
		synctest.Wait()
		if got := names(r); len(got) != 2 {
			t.Errorf("with another device: %v", got)
		}
		if uris := said.take(); !slices.Equal(uris, []string{"xiaozhi://devices", "xiaozhi://devices/b/status", "xiaozhi://devices/b/states", "xiaozhi://devices/a/transcript"}) {
			t.Errorf("told of %v", uris)
		}
		h.set("b")
		f.DeviceChanged("a")
		time.Sleep(settleLimit)
		synctest.Wait()
		if got := names(r); !slices.Equal(got, []string{"device-b.self.wave"}) {
			t.Errorf("after one left: %v", got)
		}
	})
}

func TestFollowerBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, said := &home{}, &told{}
		f := NewFollower(catalog.NewRegistry(router.Gate{}), Options{Devices: h, Log: slog.New(slog.DiscardHandler)}, said.updated)
		f.Wake()
		defer run(t, f)()
		h.set("a")
		for range 4 { // changes that keep coming do not put it off for ever
			f.DeviceChanged("a")
			time.Sleep(settleTime * 3 / 4)
			if uris := said.take(); uris != nil {
				t.Errorf("told too early of %v", uris)
			}
		}
		time.Sleep(settleTime)
		synctest.Wait()
		if uris := said.take(); len(uris) != 3 {
			t.Errorf("told of %v", uris)
		}
	})
}

func TestFollowerShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		tools := []mcp.Tool{
			{Name: "search", Stream: "web", Source: "external:web"}, {Name: "now", Stream: "time", Source: "external:clock", Trusted: true},
			{Name: "灯", Stream: "web", Source: "external:web"},
		}
		var log strings.Builder
		r := catalog.NewRegistry(router.Gate{})
		f := NewFollower(r, Options{
			Shared: func() []mcp.Tool { mu.Lock(); defer mu.Unlock(); return tools },
			CallShared: func(_ context.Context, t mcp.Tool, _ map[string]any) (any, error) {
				source, name := t.Source, t.Name
				return source + " " + name, nil
			},
			Log: slog.New(slog.NewTextHandler(&log, nil)),
		}, (&told{}).updated)
		if got := names(r); !slices.Equal(got, []string{"server-time.now", "web.search"}) {
			t.Errorf("tools %v", got)
		}
		call(t, r, "server-time.now", `{}`).want(t, "external:clock now")
		stop := run(t, f)
		mu.Lock()
		tools = tools[1:]
		mu.Unlock()
		time.Sleep(2 * sharedPoll)
		synctest.Wait()
		stop()
		if got := names(r); !slices.Equal(got, []string{"server-time.now"}) {
			t.Errorf("later %v", got)
		}
		if n := strings.Count(log.String(), "tool is not offered outward"); n != 1 {
			t.Errorf("%d warnings: %s", n, log.String())
		}
	})
}

// BenchmarkFollowerDevices takes in 500 devices that come at once, while a client
// has a view of them.
func BenchmarkFollowerDevices(b *testing.B) {
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = fmt.Sprintf("24:6f:28:aa:%02x:%02x", i>>8, i&255)
	}
	h := &home{}
	h.set(ids...)
	for b.Loop() {
		b.StopTimer()
		r := catalog.NewRegistry(router.Gate{})
		view := viewOf(r)
		f := NewFollower(r, Options{Devices: h, Log: slog.New(slog.DiscardHandler)}, (&told{}).updated)
		b.StartTimer()
		f.takeDevices(ids)
		if n := len(view.Tools()); n != len(ids) {
			b.Fatalf("%d tools", n)
		}
	}
}
