package router

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
)

// TestTimesOf: a setting counts by the tool's own name, the model's, and its source; what says more counts before what
// says less.
func TestTimesOf(t *testing.T) {
	times := Times{
		"*": time.Second, "self.*": 2 * time.Second, "self.lamp.*": 3 * time.Second, "self.lamp.set": 4 * time.Second,
		"external:maps/*": 5 * time.Second, "maps_find": 6 * time.Second, "a*": 7 * time.Second, "?b": 8 * time.Second,
	}
	for name, test := range map[string]struct {
		tool mcp.Tool
		want time.Duration
		by   string
	}{
		"all":                {mcp.Tool{Name: "x", Source: "local"}, time.Second, "*"},
		"longer":             {mcp.Tool{Name: "self.fan", Source: "device"}, 2 * time.Second, "self.*"},
		"longest":            {mcp.Tool{Name: "self.lamp.off", Source: "device"}, 3 * time.Second, "self.lamp.*"},
		"exact":              {mcp.Tool{Name: "self.lamp.set", Source: "device"}, 4 * time.Second, "self.lamp.set"},
		"by source":          {mcp.Tool{Name: "look", Source: "external:maps"}, 5 * time.Second, "external:maps/*"},
		"the model's name":   {mcp.Tool{Name: "maps.find", Source: "external:maps"}, 6 * time.Second, "maps_find"},
		"as long as another": {mcp.Tool{Name: "ab", Source: "local"}, 8 * time.Second, "?b"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // whatever the order of the map
				if got, by := times.Of(test.tool, mcp.FunctionName(test.tool.Name)); got != test.want || by != test.by {
					t.Fatalf("%v by %q, want %v by %q", got, by, test.want, test.by)
				}
			}
		})
	}
	if got, by := (Times{}).Of(mcp.Tool{Name: "x"}); got != 0 || by != "" {
		t.Errorf("no setting: %v by %q", got, by)
	}
}

// TestLimits: which of a setting, what its source says, and the usual ends a call.
func TestLimits(t *testing.T) {
	people := mcp.Annotations{Audience: []string{"user"}}
	for name, test := range map[string]struct {
		tool mcp.Tool
		job  bool
		want time.Duration
	}{
		"a file's own":                   {mcp.Tool{Name: "a", Source: "file", Timeout: 20 * time.Second}, false, 20 * time.Second},
		"another server's own":           {mcp.Tool{Name: "a", Source: "external:x", Timeout: 90 * time.Second}, false, 90 * time.Second},
		"another server, which has none": {mcp.Tool{Name: "a", Source: "external:x"}, false, 15 * time.Second},
		"a setting":                      {mcp.Tool{Name: "set", Source: "external:x", Timeout: 90 * time.Second}, false, 3 * time.Minute},
		"a job":                          {mcp.Tool{Name: "a", Source: "external:x", Timeout: 90 * time.Second}, true, 30 * time.Minute},
		"a job with more time":           {mcp.Tool{Name: "a", Source: "external:x", Timeout: time.Hour}, true, time.Hour},
		"a job with a setting":           {mcp.Tool{Name: "set", Source: "external:x"}, true, 3 * time.Minute},
		"for people":                     {mcp.Tool{Name: "self.reboot", Source: "device", Annotations: people}, false, time.Minute},
		"for people, elsewhere":          {mcp.Tool{Name: "self.reboot", Source: "external:x", Annotations: people}, false, 15 * time.Second},
		"a camera of another server":     {mcp.Tool{Name: "self.camera.take", Source: "external:x"}, false, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Times{"set": 3 * time.Minute}).limitOf(Offer{Tool: test.tool, Job: test.job}); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// TestSetTimes: settings that change count for the next call.
func TestSetTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newRouter(t, Options{Times: Times{"a": 2 * time.Second}}, newBusy(time.Hour, "device", "a"))
		took := func() time.Duration {
			began := time.Now()
			if r := b.Run(t.Context(), prepare(t, b, "a", "")); r.Response != errNoReply.Error() {
				t.Errorf("%+v", r)
			}
			return time.Since(began)
		}
		if got := took(); got != 2*time.Second {
			t.Errorf("%v", got)
		}
		b.SetLimits(Limits{Times: Times{"device/*": time.Minute}})
		if got := took(); got != time.Minute {
			t.Errorf("%v", got)
		}
	})
}

// TestJobFreesDevice: a job that goes on leaves the device to other calls soon; one that is over at once keeps the order.
// What a turn waits for ends as soon as any call, whatever the tool says of itself.
func TestJobFreesDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBusy(10*time.Minute, "device", "dig", "lamp")
		d.tools[0].Job = true
		slow := d.call
		d.call = func(ctx context.Context, name string, arguments map[string]any) (any, error) {
			if name == "lamp" {
				return name, nil
			}
			return slow(ctx, name, arguments)
		}
		b := newRouter(t, Options{}, d)
		began := time.Now()
		dug := make(chan mcp.ActionResponse, 1)
		go func() { dug <- b.Detach(t.Context(), prepare(t, b, "dig", "")) }()
		synctest.Wait()
		if r := b.Run(t.Context(), prepare(t, b, "lamp", "")); r.Result != "lamp" || time.Since(began) != jobHolds {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
		if r := <-dug; r.Result != "dig" || time.Since(began) != 10*time.Minute {
			t.Errorf("the job: %+v after %v", r, time.Since(began))
		}
		began = time.Now()
		if r := b.Run(t.Context(), prepare(t, b, "dig", "")); r.Response != errNoReply.Error() || time.Since(began) != callTimeout {
			t.Errorf("awaited in a turn: %+v after %v", r, time.Since(began))
		}
		began = time.Now()
		p, refused := b.Prepare(mcp.Call{ID: "c2", Name: "dig", By: mcp.ByOutside})
		if refused != nil {
			t.Fatal(refused)
		}
		if r := b.Run(t.Context(), p); r.Result != "dig" || time.Since(began) != 10*time.Minute {
			t.Errorf("awaited from outside: %+v after %v", r, time.Since(began))
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if strings.Join(d.did, " ") != "dig dig dig" {
			t.Errorf("did %q", d.did)
		}
	})
}
