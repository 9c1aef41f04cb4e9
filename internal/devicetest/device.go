package devicetest

import (
	"context"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Device is a simulated speaker with an open channel. All methods may be called
// at the same time, but those that act must not be called from inside a [Tool]:
// they wait for the main task, which the tool holds.
type Device struct {
	*Journal // what happened
	*Voice   // what the microphone hears

	link     *link
	body     *body
	receiver *receiver
	main     *mainTask
	things   *things

	cancel context.CancelFunc // ends tools and the main task
	work   sync.WaitGroup     // receiver and main task
}

func newDevice(o Options, ws *websocket.Conn) *Device {
	j := newJournal()
	t := o.Profile.traits()
	l := newLink(ws, j, o.Protocol, t.emptySession)
	b := newBody(o, j)
	offered, asked := o.offersMCP(), newRequests(j)
	halt := newFreezer(o.Quirks.Freezes, b)
	things := newThings(o, l, j)
	tools := &toolServer{
		tools: o.Tools, silent: o.Quirks.MuteMCP || !offered, plain: o.Profile == PyXiaozhi,
		deviceID: o.DeviceID, clientID: o.ClientID, client: o.HTTPClient,
		link: l, journal: j, requests: asked, freezer: halt,
	}
	m := newMainTask(o.Quirks.MainTaskDelay, l, b, j)
	m.tools, m.things = tools, things
	return &Device{
		Journal: j, Voice: newVoice(o, l, b, j, m.done),
		link: l, body: b, main: m, things: things,
		receiver: &receiver{
			link: l, body: b, journal: j, main: m, freezer: halt,
			downlink: newDownlink(o, l, b, j), requests: asked, offersMCP: offered,
			hasThings: len(o.Things) > 0, restsIn: o.restsIn(), tolerance: o.Limits.Tolerance,
			greeted: make(chan error, 1), lastIn: time.Now(),
		},
	}
}

// CloseTCP drops the connection as the firmware does: no Close frame, no wait.
func (d *Device) CloseTCP() { d.link.close() }

// Close drops the connection and waits until the device is at rest. It may be called again.
func (d *Device) Close() {
	d.CloseTCP()
	d.cancel()
	d.work.Wait()
}

// WaitState returns when the device is in a state: at once if it is there already.
func (d *Device) WaitState(ctx context.Context, want State) error {
	return d.body.until(ctx, func() bool { return d.body.state == want })
}

// State returns the device's present state.
func (d *Device) State() State {
	d.body.mu.Lock()
	defer d.body.mu.Unlock()
	return d.body.state
}

// SessionID returns the session id of the server's hello.
func (d *Device) SessionID() string { return d.link.session() }

// PacketLength returns the length of a downlink packet, by the server's hello.
func (d *Device) PacketLength() time.Duration { return d.link.packetLength() }

// Violations returns all breaches so far, with what is overdue at this moment.
func (d *Device) Violations() []Violation {
	d.body.mu.Lock()
	late := d.body.check.overdue(time.Now())
	d.body.mu.Unlock()
	return append(d.Journal.Violations(), late...)
}

// Done is closed when the connection is gone and all that came in has been applied.
func (d *Device) Done() <-chan struct{} { return d.main.done }

// ListenStart opens the microphone in a mode, as the button and the wake word do.
// A reply that is going on is cut by it.
func (d *Device) ListenStart(mode Mode) error {
	return d.main.do(func() error { return d.main.listenStart(mode) })
}

// ListenStop lets the button go: the microphone closes and the device is idle at once.
func (d *Device) ListenStop() error { return d.main.do(d.main.listenStop) }

// Detect sends a wake word, or text as other clients type it (3.2.3). A device in
// manual mode that has only just connected is idle afterwards, ready to speak.
func (d *Device) Detect(text string) error {
	return d.main.do(func() error { return d.main.detect(text) })
}

// WakeWord is the only reason of an abort that devices send.
const WakeWord = "wake_word_detected"

// Abort cuts the reply (3.2.4). With no reason it is the button: the firmware
// stays in speaking until its tts stop comes. With WakeWord it listens by itself.
func (d *Device) Abort(reason string) error {
	return d.main.do(func() error { return d.main.abort(reason) })
}

// SendText writes raw bytes as a text message, whatever they are.
func (d *Device) SendText(raw []byte) error { return d.link.sendText(raw) }

// SendBinary writes raw bytes as a binary message, without any framing.
func (d *Device) SendBinary(raw []byte) error { return d.link.write(websocket.BinaryMessage, raw) }

// SendFrames writes Opus packets in a burst, framed, in any state.
func (d *Device) SendFrames(packets ...[]byte) error {
	for _, p := range packets {
		if err := d.link.sendFrame(p, 0); err != nil {
			return err
		}
	}
	return nil
}
