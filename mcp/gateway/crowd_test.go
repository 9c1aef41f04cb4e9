package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/mcp/gateway/catalog"
)

// TestCrowd: many devices that come at once are one change.
func TestCrowd(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", nil)
	ask(t, conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	came := time.Now()
	for i := range 100 {
		id := fmt.Sprintf("24:6f:28:bb:00:%02x", i)
		r.home.connect(id, "", nil)
		r.DeviceChanged(id)
	}
	told := 0
	for deadline := time.Now().Add(30 * time.Second); told == 0 && time.Now().Before(deadline); {
		if strings.Contains(read(t, conn), "tools/list_changed") {
			told++
		}
	}
	until(t, "all of them", func() bool { return len(r.views.Streams(catalog.Caller{Owner: true})) > 100 })
	// A change is told when none has come for 100 ms: more often only where the machine stands still.
	most := max(3, 1+int(time.Since(came)/(100*time.Millisecond)))
	got := ask(t, conn, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	for !strings.Contains(got, `"id":2`) {
		if strings.Contains(got, "tools/list_changed") {
			told++
		}
		got = read(t, conn)
	}
	if told > most {
		t.Errorf("told %d times, want %d at most", told, most)
	}
}

// TestUnaskedDevices: until a client asks, nothing of the devices is kept, whatever
// watches the server's health. Health counts them all the same, and the first client
// that asks finds those that are there.
func TestUnaskedDevices(t *testing.T) {
	r := newRig(t, nil)
	r.home.connect(bedroomID, "bedroom", nil)
	r.DeviceChanged(bedroomID)
	r.home.leave(kitchenID)
	r.DeviceChanged(kitchenID)
	counts := func() (out [4]any) {
		body := r.do("GET", "/api/mcp/health", "").body
		for i, key := range []string{"toolsCount", "resourcesCount", "promptsCount", "streams"} {
			out[i] = fmt.Sprint(field(t, body, key))
		}
		return out
	}
	asleep := counts()
	if streams := r.views.Streams(catalog.Caller{Owner: true}); slices.ContainsFunc(streams, func(s string) bool { return strings.HasPrefix(s, "device-") }) {
		t.Errorf("kept before anybody asks: %q", streams)
	}
	if a := r.do("GET", "/api/mcp/tools/stream/device-246f28aa1003", ""); a.status != 200 || len(field(t, a.body, "tools").([]any)) != 3 {
		t.Errorf("the first who asks: %d %s", a.status, a.body)
	}
	if awake := counts(); awake != asleep || !strings.Contains(fmt.Sprint(awake), "device-246f28aa1003") {
		t.Errorf("health: %v before, %v after", asleep, awake)
	}
	r.home.leave(bedroomID)
	r.DeviceChanged(bedroomID)
	until(t, "the going", func() bool { return r.do("GET", "/api/mcp/tools/stream/device-246f28aa1003", "").status == 404 })
}
