package websocket

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/audio"
	"xiaozhi/connection"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
)

// dialStrict connects a device that checks every rule of the protocol.
func dialStrict(ctx context.Context, t *testing.T, r *rig, o devicetest.Options) *devicetest.Device {
	t.Helper()
	nc, err := r.ln.dial()
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.NetConn = "ws://server/xiaozhi/v1/", nc
	d, err := devicetest.Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func noViolations(t *testing.T, d *devicetest.Device) {
	t.Helper()
	synctest.Wait()
	for _, v := range d.Violations() {
		t.Errorf("violation: %v", v)
	}
}

// minute is a minute of fake time.
func minute(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// strictTalks is a bubble whose conversations answer, and are kept by Device-Id.
func strictTalks(t *testing.T, talks *sync.Map, f func(t *testing.T, r *rig)) {
	t.Helper()
	bubble(t, func(o *setup) {
		o.NewConversation = func(s wire.Session, out wire.Outbox, _ []mcp.Source) (connection.Conversation, error) {
			enc, err := audio.NewEncoder(audio.Reply)
			talk := &scriptedTalk{out: out, events: make(chan wire.Event, 16), enc: enc, over: make(chan struct{})}
			talks.Store(s.DeviceID, talk)
			return talk, err
		}
		o.NewTools = func(_ wire.Session, link connection.Link) connection.Tools {
			return device.New(device.Options{Send: link.Send})
		}
	}, f)
}

// TestStalledDevice: one socket stops being read while its
// reply streams and tools are called; it is closed within 5 s and holds little,
// and five strict devices hear their replies as if it were not there (M16).
func TestStalledDevice(t *testing.T) {
	talks := new(sync.Map)
	strictTalks(t, talks, func(t *testing.T, r *rig) {
		ctx := minute(t)
		stalled, _, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"stalled"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := stalled.WriteMessage(websocket.TextMessage, []byte(`{"type":"hello"}`)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := stalled.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		held, _ := talks.Load("stalled")
		talk := held.(*scriptedTalk)
		began := time.Now()
		var full time.Duration
		go func() { // its conversation talks on
			for over := false; !over; time.Sleep(time.Millisecond) {
				talk.out.Send(wire.Message{Kind: wire.MessageSTT, Text: strings.Repeat("x", 3900)})
				talk.out.Audio(1, make([]byte, 250))
				select {
				case <-talk.over:
					over = true
				default:
				}
			}
			full = time.Since(began)
		}()
		var devices []*devicetest.Device
		for i := range 5 {
			d := dialStrict(ctx, t, r, devicetest.Options{DeviceID: fmt.Sprint("well", i), OpenListen: true, Limits: devicetest.Limits{StrictLead: true}})
			defer d.Close()
			devices = append(devices, d)
			if err := d.Detect("hello"); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range devices {
			if reply, err := d.WaitReply(ctx); err != nil || reply.Frames != 17 || reply.Dropped != 0 || reply.Underruns != 0 {
				t.Errorf("reply %+v, %v", reply, err)
			}
			noViolations(t, d)
		}
		time.Sleep(5 * time.Second)
		if full == 0 || full > 6*time.Second {
			t.Errorf("the stalled device was there for %v", full)
		}
		if n := len(r.log.lines("device left", "stalled")); n != 1 {
			t.Errorf("log:\n%s", r.log.lines("stalled"))
		}
	})
}
