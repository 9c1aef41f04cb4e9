package device

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/testall"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// A house full of devices: what the router costs, and that no result goes astray.
const (
	loadDevices = 100
	loadTools   = 20
)

// echoDevice is a device with loadTools tools that answer with who was asked
// for what, after a while.
type echoDevice struct {
	name   string
	client *Client
	box    *router.Router
	wg     sync.WaitGroup
	worked atomic.Int64 // nanoseconds that the last call took on the device
}

// newEchoDevice connects a device whose tools take work to run.
func newEchoDevice(tb testing.TB, ctx context.Context, name string, work time.Duration) *echoDevice {
	tb.Helper()
	d := &echoDevice{name: name}
	d.client = New(Options{Send: func(payload json.RawMessage) error {
		var req struct {
			ID     int64
			Method string
			Params struct {
				Name      string
				Arguments map[string]any
			}
		}
		if err := json.Unmarshal(payload, &req); err != nil {
			return err
		}
		if req.ID == 0 {
			return nil
		}
		d.wg.Go(func() {
			if req.Method == "tools/call" {
				began := time.Now()
				time.Sleep(work)
				d.worked.Store(int64(time.Since(began)))
			}
			d.client.Deliver(json.RawMessage(d.answer(req.ID, req.Method, req.Params.Name, req.Params.Arguments)))
		})
		return nil
	}})
	if err := d.client.Start(ctx); err != nil {
		tb.Fatal(err)
	}
	d.box = router.New(router.Options{}, d.client)
	return d
}

func (d *echoDevice) answer(id int64, method, tool string, args map[string]any) string {
	result := `{}`
	switch method {
	case "initialize":
		result = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`
	case "tools/list":
		var tools []string
		for i := range loadTools {
			tools = append(tools, fmt.Sprintf(`{"name":"self.t%d","description":"echo","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`, i))
		}
		result = `{"tools":[` + strings.Join(tools, ",") + `]}`
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"%s %s %v"}],"isError":false}`, d.name, tool, args["n"])
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
}

// call runs one tool and checks that the answer is its own.
func (d *echoDevice) call(ctx context.Context, n int) error {
	tool := n % loadTools
	p, bad := d.box.Prepare(mcp.Call{ID: strconv.Itoa(n), Name: "self_t" + strconv.Itoa(tool), Arguments: fmt.Sprintf(`{"n":%d}`, n)})
	if bad != nil {
		return fmt.Errorf("%s: %v", d.name, bad.Result)
	}
	r := d.box.Run(ctx, p)
	if want := fmt.Sprintf("%s self.t%d %d", d.name, tool, n); r.Action != mcp.ActionTypeReqLLM || mcp.ResultText(r) != want {
		return fmt.Errorf("got %+v, want %q", r, want)
	}
	return nil
}

func (d *echoDevice) stop() {
	d.box.Close()
	_ = d.client.Stop()
	d.wg.Wait()
}

// TestHouse: 100 devices with 20 tools each get 10 calls a second for two seconds:
// every result comes to the call that asked, in its time.
func TestHouse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range loadDevices {
			d := newEchoDevice(t, t.Context(), fmt.Sprint("d", i), 50*time.Millisecond)
			wg.Go(func() {
				defer d.stop()
				synctestSettle(d)
				for n := range testall.Pick(20, 6) {
					wg.Go(func() {
						began := time.Now()
						if err := d.call(t.Context(), n); err != nil {
							t.Error(err)
						}
						if took := time.Since(began); took > time.Second {
							t.Errorf("%s waited %v in its queue", d.name, took)
						}
					})
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(time.Second)
			})
		}
		wg.Wait()
	})
}

// synctestSettle waits until the device's tools are known.
func synctestSettle(d *echoDevice) {
	for !d.client.IsReady() {
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkHouse is a second of the same load in real time: ns/op says nothing,
// own-p50-us and own-p99-us are the router's own time of a call (all of it but
// the device's work), heap-growth-KiB what stays behind in memory from the
// first second to the last. For ten minutes: -benchtime 600x.
func BenchmarkHouse(b *testing.B) {
	const work = 5 * time.Millisecond
	var devices []*echoDevice
	for i := range loadDevices {
		d := newEchoDevice(b, b.Context(), fmt.Sprint("d", i), work)
		defer d.stop()
		synctestSettle(d)
		devices = append(devices, d)
	}
	var mu sync.Mutex
	var own []time.Duration
	n := 0
	second := func() {
		var wg sync.WaitGroup
		for _, d := range devices {
			wg.Go(func() {
				time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
				for k := range 10 {
					began := time.Now()
					if err := d.call(b.Context(), n*10+k); err != nil {
						b.Error(err)
					}
					took := time.Since(began)
					mu.Lock()
					own = append(own, took-time.Duration(d.worked.Load()))
					mu.Unlock()
					time.Sleep(100*time.Millisecond - took)
				}
			})
		}
		wg.Wait()
		n++
	}
	second()
	own = own[:0]
	before := heap()
	for b.Loop() {
		second()
		if len(own) > 200_000 {
			own = slices.Clone(own[len(own)-100_000:])
		}
	}
	after := heap() - int64(cap(own))*8 // our own notes do not count
	slices.Sort(own)
	b.ReportMetric(float64(own[len(own)/2].Microseconds()), "own-p50-us")
	b.ReportMetric(float64(own[len(own)*99/100].Microseconds()), "own-p99-us")
	b.ReportMetric(float64(after-before)/1024, "heap-growth-KiB")
}

// heap is how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
