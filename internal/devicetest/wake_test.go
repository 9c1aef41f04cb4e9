package devicetest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// On a wake word the cached sound comes first, then detect, then listen start,
// and only then the answer to an MCP request that came right after the hello.
func TestWakeOrder(t *testing.T) {
	d := talk(t, Options{OpenListen: true, Wake: Wake{Word: "hi xiaozhi", Frames: 33}, Tools: NewBoard().Tools()}, func(w *wire) {
		w.hello()
		w.say(mcp(1, "initialize", `{"protocolVersion":"2024-11-05"}`))
		for i, want := range []string{`"state":"detect","text":"hi xiaozhi"`, `"state":"start","mode":"auto"`, `"serverInfo"`} {
			if got := <-w.in; !strings.Contains(got, want) {
				t.Errorf("message %d: %s, want %s", i, got, want)
			}
			if i == 0 && len(w.binary) != 33 {
				t.Errorf("%d frames before the detect", len(w.binary))
			}
		}
	}, nil)
	if got := d.Violations(); len(got) != 0 {
		t.Errorf("violations: %v", got)
	}
}

// The burst of a wake word is sound, not silence.
func TestWakeBurst(t *testing.T) {
	talk(t, Options{}, func(w *wire) {
		w.hello()
		for range 5 {
			if p := <-w.binary; len(p) < 20 {
				t.Errorf("a frame of %d bytes", len(p))
			}
		}
	}, func(_ context.Context, d *Device) {
		if err := d.WakeBurst(5); err != nil {
			t.Error(err)
		}
	})
}

// Messages carry the session id, or an empty one on clients that keep none.
func TestSessionIDs(t *testing.T) {
	for profile, want := range map[Profile]string{Firmware242: "s1", PyXiaozhi: "", OldIoT162: "", Browser: "s1"} {
		talk(t, Options{OpenListen: true, Profile: profile}, func(w *wire) {
			w.hello()
			var m struct {
				SessionID *string `json:"session_id"`
			}
			if err := json.Unmarshal([]byte(<-w.in), &m); err != nil || m.SessionID == nil || *m.SessionID != want {
				t.Errorf("%s: session %v, %v", profile, m.SessionID, err)
			}
		}, nil)
	}
}

// The hello is the profile's, or whatever a test wants.
func TestHello(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"firmware", Options{}, `{"type":"hello","version":1,"features":{"mcp":true},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`},
		{"echo cancelling", Options{Sound: Sound{AEC: true, FrameMs: 20}, Protocol: 2}, `{"type":"hello","version":2,"features":{"aec":true,"mcp":true},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":20}}`},
		{"no tools", Options{NoMCP: true}, `{"type":"hello","version":1,"features":{},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`},
		{"old", Options{Profile: OldIoT162}, `{"type":"hello","version":1,"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`},
		{"own", Options{Hello: json.RawMessage(`{"type":"hello"}`)}, `{"type":"hello"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := talk(t, tt.o, (*wire).hello, nil)
			if got := string(d.Events()[0].Raw); got != tt.want {
				t.Errorf("hello %s\nwant  %s", got, tt.want)
			}
		})
	}
}

// A device that hears "reboot" drops its channel.
func TestReboot(t *testing.T) {
	talk(t, Options{OpenListen: true}, func(w *wire) {
		w.hello()
		w.say(`"type":"system","command":"reboot"`)
		<-w.ends
	}, nil)
}

// Closing a device in the middle of everything leaves nothing behind: the bubble
// would not end with a goroutine in it.
func TestCloseAnywhere(t *testing.T) {
	stuck := Tool{Name: "stuck", Call: func(ctx context.Context, _ Call) (Result, error) {
		<-ctx.Done()
		return Result{}, ctx.Err()
	}}
	for name, script := range map[string]func(*wire){
		"idle":     func(*wire) {},
		"speaking": func(w *wire) { w.begin(); w.tone(30) },
		"in tool":  func(w *wire) { w.say(mcp(1, "tools/call", `{"name":"stuck"}`)) },
		"closing":  (*wire).close,
	} {
		t.Run(name, func(t *testing.T) {
			talk(t, Options{OpenListen: true, Tools: []Tool{stuck}}, func(w *wire) {
				w.hello()
				w.await(`"state":"start"`)
				script(w)
				<-w.ends
			}, func(_ context.Context, d *Device) {
				<-time.After(300 * ms)
				synctest.Wait()
				d.Close()
				for _, v := range d.Violations() {
					t.Errorf("the device's own end breaks a rule: %s", v)
				}
			})
		})
	}
}
