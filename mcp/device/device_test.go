package device_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
)

// TestClientThroughRouter is the whole way: a device's tools under a model's
// names, a repaired call, an answer, and the end of the device.
func TestClientThroughRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device := device.NewFakeDevice(t).Client(device.Options{})
		own := local.New(local.Options{})
		box := router.New(router.Options{}, device, own)
		defer box.Close()
		for _, s := range []mcp.Source{device, own} {
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
		}
		synctest.Wait()
		var names []string
		for _, o := range box.Offers() {
			names = append(names, o.LLMName)
		}
		if got := strings.Join(names, " "); !strings.HasPrefix(got, "get_current_time ") || !strings.HasSuffix(got, " self_echo self_slow") {
			t.Errorf("offers: %s", got)
		}
		p, refused := box.Prepare(mcp.Call{ID: "1", Name: "self_echo", Arguments: `{"text":5}`})
		if refused != nil {
			t.Fatalf("refused: %+v", *refused)
		}
		if r := box.Run(t.Context(), p); r.Action != mcp.ActionTypeReqLLM || r.Result != `{"text":"5"}` {
			t.Errorf("echo: %+v", r)
		}
		slow, _ := box.Prepare(mcp.Call{ID: "2", Name: "self_slow"})
		time.AfterFunc(time.Second, func() { _ = device.Stop() })
		began := time.Now()
		if r := box.Run(t.Context(), slow); r.Action != mcp.ActionTypeError || time.Since(began) != time.Second {
			t.Errorf("a call while the device leaves: %+v after %v", r, time.Since(began))
		}
		if _, refused := box.Prepare(mcp.Call{Name: "self_echo"}); refused == nil {
			t.Error("a device that left still has tools")
		}
		if _, refused := box.Prepare(mcp.Call{Name: "exit"}); refused != nil {
			t.Error("the local tools went with the device")
		}
	})
}

// TestManyDevices: calls of many devices at the same time never cross.
func TestManyDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for n := range 50 {
			wg.Go(func() {
				device := device.NewFakeDevice(t).Client(device.Options{})
				if err := device.Start(t.Context()); err != nil {
					t.Error(err)
				}
				defer device.Stop()
				box := router.New(router.Options{}, device)
				defer box.Close()
				<-time.After(time.Second)
				var calls sync.WaitGroup
				for i := range 10 {
					calls.Go(func() {
						want := fmt.Sprintf(`{"text":"%d/%d"}`, n, i)
						p, refused := box.Prepare(mcp.Call{Name: "self_echo", Arguments: want})
						if refused != nil {
							t.Errorf("refused: %+v", *refused)
							return
						}
						if r := box.Run(t.Context(), p); r.Result != want {
							t.Errorf("got %+v, want %s", r, want)
						}
					})
				}
				calls.Wait()
			})
		}
		wg.Wait()
	})
}
