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

// noticeFrames is how long the notices of these tests are: 1.2 s.
const noticeFrames = 20

// tonal makes notices of a tone, whose text names the kind and the language.
func tonal(t *testing.T) func(connection.NoticeKind, string) connection.Notice {
	t.Helper()
	s := scriptedTalk{}
	var err error
	if s.enc, err = audio.NewEncoder(audio.Reply); err != nil {
		t.Fatal(err)
	}
	var packets [][]byte
	for range noticeFrames {
		packets = append(packets, s.frame(true))
	}
	closing := s.frame(false)
	return func(kind connection.NoticeKind, language string) connection.Notice {
		return connection.Notice{Text: fmt.Sprint(kind, " ", language), Packets: packets, Closing: closing}
	}
}

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

// told waits for the notice, the whole of it, and for the end of the connection.
func told(ctx context.Context, t *testing.T, d *devicetest.Device, text string) {
	t.Helper()
	reply, err := d.WaitReply(ctx)
	if err != nil {
		t.Fatalf("nothing was said: %v", err)
	}
	if reply.Text() != text || reply.Frames != noticeFrames || reply.Dropped != 0 || reply.Underruns != 0 {
		t.Errorf("the device heard %q, %d frames, %d dropped, %d underruns", reply.Text(), reply.Frames, reply.Dropped, reply.Underruns)
	}
	select {
	case <-d.Done():
	case <-ctx.Done():
		t.Error("the connection was not closed")
	}
	noViolations(t, d)
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

// strictRig is a bubble whose conversations answer, and which has notices.
func strictRig(t *testing.T, f func(t *testing.T, r *rig)) { strictTalks(t, new(sync.Map), f) }

// strictTalks is strictRig with the conversations by Device-Id.
func strictTalks(t *testing.T, talks *sync.Map, f func(t *testing.T, r *rig)) {
	t.Helper()
	say := tonal(t)
	bubble(t, func(o *setup) {
		o.Notice = say
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

// rush makes the server too busy for any device.
func (r *rig) rush() {
	r.load.busy.Store(true)
}

// TestTooBusyNotice: under load a new device is let in, told in its own
// language, and closed, whatever it is and whatever its first word is. Those
// that are here do not notice.
func TestTooBusyNotice(t *testing.T) {
	for name, o := range map[string]devicetest.Options{
		"firmware":         {Profile: devicetest.Firmware242},
		"firmware, manual": {Profile: devicetest.Firmware242, Mode: devicetest.Manual},
		"realtime":         {Profile: devicetest.Firmware242, Mode: devicetest.Realtime, Sound: devicetest.Sound{AEC: true}, Protocol: 2},
		"wake word":        {Profile: devicetest.Firmware242, Wake: devicetest.Wake{Word: "ni hao xiao zhi", Frames: 33}},
		"older firmware":   {Profile: devicetest.Firmware222Minus, Protocol: 3},
		"oldest firmware":  {Profile: devicetest.OldIoT162, Protocol: 3},
		"py":               {Profile: devicetest.PyXiaozhi},
		"browser":          {Profile: devicetest.Browser},
	} {
		t.Run(name, func(t *testing.T) {
			strictRig(t, func(t *testing.T, r *rig) {
				ctx := minute(t)
				o.OpenListen, o.Tools = true, devicetest.NewBoard().Tools()
				old := dialStrict(ctx, t, r, devicetest.Options{DeviceID: "old", OpenListen: true})
				defer old.Close()
				r.rush()
				d := dialStrict(ctx, t, r, o)
				if err := old.Detect("hello"); err != nil {
					t.Fatal(err)
				}
				told(ctx, t, d, "0 zh")
				if reply, err := old.WaitReply(ctx); err != nil || reply.Text() != "you said hello" || reply.Frames != 17 || reply.Dropped != 0 {
					t.Errorf("the device that was here before: %+v, %v", reply, err)
				}
				noViolations(t, old)
				if len(r.log.lines("device left", "server is too busy")) != 1 {
					t.Errorf("log:\n%s", r.log)
				}
				if n := len(r.log.lines("WARN")); n != 1 {
					t.Errorf("%d warnings:\n%s", n, r.log.lines("WARN"))
				}
				r.load.busy.Store(false)
				again := dialStrict(ctx, t, r, devicetest.Options{DeviceID: "new", OpenListen: true})
				defer again.Close()
				if err := again.Detect("hello"); err != nil {
					t.Fatal(err)
				}
				if reply, err := again.WaitReply(ctx); err != nil || reply.Text() != "you said hello" {
					t.Errorf("after the rush: %+v, %v", reply, err)
				}
			})
		})
	}
}

// The close code of a device that was turned away says that it may come again.
func TestTooBusyCloseCode(t *testing.T) {
	for name, say := range map[string]func(connection.NoticeKind, string) connection.Notice{"aloud": tonal(t), "without a notice": nil} {
		bubble(t, func(o *setup) { o.Notice = say }, func(t *testing.T, r *rig) {
			r.rush()
			p := r.greet("d1")
			if say != nil {
				p.send(`{"type":"listen","state":"start","mode":"auto"}`)
			}
			<-p.done
			if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != websocket.CloseTryAgainLater {
				t.Errorf("%s: closed by %v", name, closed)
			}
		})
	}
}

// A device that never listens cannot be told, and is not kept either.
func TestTooBusyNeverListens(t *testing.T) {
	bubble(t, func(o *setup) { o.Notice = tonal(t) }, func(t *testing.T, r *rig) {
		r.rush()
		p := r.greet("d1")
		began := time.Now()
		<-p.done
		if lived := time.Since(began); lived > 5*time.Second+time.Second || len(p.of(websocket.BinaryMessage)) != 0 {
			t.Errorf("lived for %v, got %d frames", lived, len(p.of(websocket.BinaryMessage)))
		}
	})
}

// A device that is busy with its own connection comes back into its own place.
func TestTooBusyReplacement(t *testing.T) {
	bubble(t, func(o *setup) { o.Notice = tonal(t) }, func(t *testing.T, r *rig) {
		r.greet("d1")
		r.rush()
		p := r.greet("d1")
		p.alive(r.talk(1))
	})
}

// The button ends a notice like any reply: a silent frame, the stop, the end.
func TestNoticeCut(t *testing.T) {
	for name, do := range map[string]func(*devicetest.Device) error{
		"button":    func(d *devicetest.Device) error { return d.Abort("") },
		"wake word": func(d *devicetest.Device) error { return d.Abort(devicetest.WakeWord) },
	} {
		t.Run(name, func(t *testing.T) {
			strictRig(t, func(t *testing.T, r *rig) {
				ctx := minute(t)
				r.rush()
				d := dialStrict(ctx, t, r, devicetest.Options{OpenListen: true})
				if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(400 * time.Millisecond)
				if err := do(d); err != nil {
					t.Fatal(err)
				}
				reply, err := d.WaitReply(ctx)
				if err != nil || !reply.Cut || reply.Frames >= noticeFrames {
					t.Errorf("reply %+v, %v", reply, err)
				}
				<-d.Done()
				noViolations(t, d)
			})
		})
	}
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

// TestNoticeCutByText: a text, or a wake word, ends a notice as it ends a reply.
func TestNoticeCutByText(t *testing.T) {
	strictRig(t, func(t *testing.T, r *rig) {
		ctx := minute(t)
		r.rush()
		d := dialStrict(ctx, t, r, devicetest.Options{Mode: devicetest.Auto, OpenListen: true})
		if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		began := time.Now()
		if err := d.Detect("tell me something"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.WaitText(ctx, "tts", "stop"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("tts stop after %v", took)
		}
		<-d.Done()
		noViolations(t, d)
	})
}

// TestNoticeAfterTheButton: who speaks with the button held is told when it is
// let go, for then the device is idle and would miss what plays; a notice over a
// button that is held too long ends with it.
func TestNoticeAfterTheButton(t *testing.T) {
	for _, held := range []time.Duration{50 * time.Millisecond, 3 * time.Second} {
		t.Run(held.String(), func(t *testing.T) {
			strictRig(t, func(t *testing.T, r *rig) {
				ctx := minute(t)
				r.rush()
				d := dialStrict(ctx, t, r, devicetest.Options{Mode: devicetest.Manual, OpenListen: true})
				time.Sleep(held)
				if err := d.ListenStop(); err != nil {
					t.Fatal(err)
				}
				told(ctx, t, d, "0 zh")
			})
		})
	}
	strictRig(t, func(t *testing.T, r *rig) {
		ctx := minute(t)
		r.rush()
		d := dialStrict(ctx, t, r, devicetest.Options{Mode: devicetest.Manual, OpenListen: true})
		if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		if err := d.ListenStop(); err != nil {
			t.Fatal(err)
		}
		<-d.Done()
		for _, v := range d.Violations() {
			// What was on its way when the button was let go is lost, and the stop is
			// for a reply that the device has left by itself.
			if v.Rule != devicetest.RuleFrameDropped && v.Rule != devicetest.RuleStopEarly {
				t.Errorf("violation: %v", v)
			}
		}
		if s := d.Stats(); s.Dropped > 2 {
			t.Errorf("%d frames for a device that is idle", s.Dropped)
		}
	})
}
