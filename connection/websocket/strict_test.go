package websocket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/connection"
	"xiaozhi/connection/request"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
)

// scriptedTalk answers every typed text with one second of sound and obeys aborts.
type scriptedTalk struct {
	out    wire.Outbox
	events chan wire.Event
	turn   uint64
	enc    *audio.Encoder
	over   chan struct{} // closed when Run ends; nil: it does not matter
}

func (s *scriptedTalk) Post(ev wire.Event) error {
	select {
	case s.events <- ev:
		return nil
	default:
		return errors.New("script is overrun")
	}
}

// Hear does nothing: the script is typed.
func (s *scriptedTalk) Hear(wire.Packet) {}

func (s *scriptedTalk) Run(ctx context.Context) error {
	if s.over != nil {
		defer close(s.over)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev := <-s.events:
			switch ev := ev.(type) {
			case wire.Detect:
				if ev.Text == "bye" {
					s.out.HangUp(errors.New("bye"))
					continue
				}
				s.reply(ctx, ev.Text)
			case wire.Abort:
				s.out.Send(wire.Message{Kind: wire.MessageTTSStop})
			case wire.Drain:
				s.out.HangUp(ev.Cause)
			}
		}
	}
}

// frame is 60 ms of a tone, or of silence.
func (s *scriptedTalk) frame(loud bool) []byte {
	pcm := make([]int16, audio.Reply.Samples())
	for i := range pcm {
		if loud {
			pcm[i] = int16(i%48*400 - 9600)
		}
	}
	packet := make([]byte, audio.MaxPacket)
	n, err := s.enc.Encode(pcm, packet)
	if err != nil {
		panic(err)
	}
	return packet[:n]
}

// closing is the frame in which cut sound ends.
func (s *scriptedTalk) closing() []byte {
	packet := make([]byte, audio.MaxPacket)
	n, err := s.enc.Silence(packet)
	if err != nil {
		panic(err)
	}
	return packet[:n]
}

// reply plays 17 frames, four ahead; an abort cuts it.
func (s *scriptedTalk) reply(ctx context.Context, text string) {
	s.turn++
	send := func(m wire.Message) { m.Turn = s.turn; s.out.Send(m) }
	send(wire.Message{Kind: wire.MessageSTT, Text: text})
	send(wire.Message{Kind: wire.MessageTTSStart})
	send(wire.Message{Kind: wire.MessageEmotion, Emotion: "happy", Text: "🙂"})
	if !s.pause(ctx, 110*time.Millisecond) {
		return
	}
	send(wire.Message{Kind: wire.MessageSentenceStart, Text: "you said " + text})
	for i := range 17 {
		if i >= 4 && !s.pause(ctx, audio.Reply.Frame) {
			return
		}
		s.out.Audio(s.turn, s.frame(true))
	}
	if s.pause(ctx, 4*audio.Reply.Frame+100*time.Millisecond) {
		send(wire.Message{Kind: wire.MessageTTSStop})
	}
}

// pause waits; false: the reply was cut, and its stop has been sent.
func (s *scriptedTalk) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case ev := <-s.events:
			if _, abort := ev.(wire.Abort); abort {
				s.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: s.turn, Cut: true, Closing: s.closing()})
				return false
			}
		}
	}
}

// A device that checks every rule of the protocol finds nothing to complain of:
// hello, tools in pages, a whole reply, a cut one, the next one, the hang-up.
func TestStrictDevice(t *testing.T) {
	change := func(o *setup) {
		o.NewConversation = func(_ wire.Session, out wire.Outbox, _ []mcp.Source) (connection.Conversation, error) {
			enc, err := audio.NewEncoder(audio.Reply)
			return &scriptedTalk{out: out, events: make(chan wire.Event, 16), enc: enc}, err
		}
		o.NewTools = func(_ wire.Session, link connection.Link) connection.Tools {
			return device.New(device.Options{Send: link.Send})
		}
	}
	for _, tc := range []struct {
		profile devicetest.Profile
		framing int
		sound   devicetest.Sound
	}{
		{devicetest.Firmware242, 1, devicetest.Sound{}},
		{devicetest.Firmware242, 2, devicetest.Sound{}},
		{devicetest.Firmware242, 2, devicetest.Sound{AEC: true}},
		{devicetest.Firmware242, 3, devicetest.Sound{}},
		{devicetest.Firmware222Minus, 1, devicetest.Sound{}},
		{devicetest.PyXiaozhi, 1, devicetest.Sound{}},
		{devicetest.Browser, 1, devicetest.Sound{}},
		{devicetest.Browser, 1, devicetest.Sound{PCM: true}},
		{devicetest.Firmware242, 1, devicetest.Sound{PCM: true}},
		{devicetest.OldIoT162, 3, devicetest.Sound{}},
	} {
		t.Run(fmt.Sprintf("%v framing %d aec %v pcm %v", tc.profile, tc.framing, tc.sound.AEC, tc.sound.PCM), func(t *testing.T) {
			bubble(t, change, func(t *testing.T, r *rig) {
				nc, err := r.ln.dial()
				if err != nil {
					t.Fatal(err)
				}
				// Of a device's seconds none is real.
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				mode := devicetest.Auto
				if tc.sound.AEC {
					mode = devicetest.Realtime
				}
				d, err := devicetest.Dial(ctx, devicetest.Options{
					URL: "ws://server/xiaozhi/v1/", NetConn: nc, Profile: tc.profile, Protocol: tc.framing, Sound: tc.sound,
					Mode: mode, OpenListen: true, Tools: devicetest.NewBoard().Tools(),
				})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				time.Sleep(time.Second)
				converse(ctx, t, d)
				synctest.Wait()
				for _, v := range d.Violations() {
					t.Errorf("violation: %v", v)
				}
			})
		})
	}
}

// converse has two replies, the first of them cut, and hangs up.
func converse(ctx context.Context, t *testing.T, d *devicetest.Device) {
	t.Helper()
	for _, abort := range []bool{true, false} {
		if err := d.Detect("hello"); err != nil {
			t.Fatal(err)
		}
		if abort {
			if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond)
			if err := d.Abort(""); err != nil {
				t.Fatal(err)
			}
		}
		reply, err := d.WaitReply(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Text() != "you said hello" || reply.Cut != abort || !abort && (reply.Frames != 17 || reply.Dropped != 0) {
			t.Errorf("reply %q, cut %v, %d frames, %d dropped", reply.Text(), reply.Cut, reply.Frames, reply.Dropped)
		}
		time.Sleep(time.Second)
	}
	if err := d.Detect("bye"); err != nil {
		t.Fatal(err)
	}
	<-d.Done()
}

// What OTA says is what a device can use.
func TestStrictProvisioning(t *testing.T) {
	bubble(t, func(o *setup) { o.Auth = request.Auth{Enabled: true, Token: "dvc_1"} }, func(t *testing.T, r *rig) {
		web := &http.Client{Transport: r.transport()}
		defer web.CloseIdleConnections()
		got, err := devicetest.Provision(t.Context(), "http://192.0.2.10/xiaozhi/ota/", devicetest.Options{HTTPClient: web})
		if err != nil {
			t.Fatal(err)
		}
		if got.URL != "ws://192.0.2.10:8000/xiaozhi/v1/" || got.Token != "dvc_1" || got.Protocol != 1 || got.Code != "" || len(got.Violations) != 0 {
			t.Errorf("%+v", got)
		}
		if late := time.Since(got.Time); late > time.Second || late < -time.Second {
			t.Errorf("the clock is %v off", late)
		}
	})
}
