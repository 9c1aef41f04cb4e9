// Package devicetest is a strict simulated speaker: it talks to a server as the ESP32 firmware does, over a real
// socket or over a pipe inside a synctest bubble, and writes down every breach of the wire protocol that it sees.
//
// It does not import testing, so that programs can use it too. References such
// as "3.2.4" in this package are to the sections of docs/protocol.md.
//
// # Concurrency
//
// A [Device] owns two goroutines. The receiver is the only caller of the socket's read side: it stamps each message,
// judges sound by the device's present state, and hands text to the main task. The main task alone changes the
// device's state: it applies messages one after the other, runs tools (and is frozen by them, as the firmware is),
// and performs what the user of this package asks for. [Device.Close] ends both and waits for them. What the two
// share is the body, under one lock; its parts (player, loudspeaker, microphone, replyCheck) look at no clock and
// have no lock, so that they are tested alone.
package devicetest

import (
	"context"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Device is a simulated speaker with an open channel. All methods may be called at the same time, but those that act
// must not be called from inside a [Tool]: they wait for the main task, which the tool holds.
type Device struct {
	*Journal // what happened
	*Voice   // what the microphone hears

	link     *link
	body     *body
	receiver *receiver
	main     *mainTask

	cancel context.CancelFunc // ends tools and the main task
	work   sync.WaitGroup     // receiver and main task
}

func newDevice(o Options, ws *websocket.Conn) *Device {
	j, t := newJournal(), o.Profile.traits()
	l, b := newLink(ws, j, o.Protocol, t.emptySession), newBody(o, j)
	asked := newRequests(j)
	halt := &freezer{on: o.Quirks.Freezes, body: b, awake: make(chan struct{}, 1)}
	m := &mainTask{
		link: l, body: b, journal: j, delay: o.Quirks.MainTaskDelay,
		tools: &toolServer{
			tools: o.Tools, silent: o.Quirks.MuteMCP || !o.offersMCP(), plain: o.Profile == PyXiaozhi,
			deviceID: o.DeviceID, clientID: o.ClientID, client: o.HTTPClient,
			link: l, journal: j, requests: asked, freezer: halt,
		},
		things: &things{list: o.Things, atOnce: o.Quirks.StatesAtOnce, link: l, journal: j, states: make(map[string][]byte)},
		jobs:   make(chan job, jobsLimit), done: make(chan struct{}), relisten: time.NewTimer(time.Hour),
	}
	m.relisten.Stop()
	return &Device{
		Journal: j, link: l, body: b, main: m,
		Voice: &Voice{link: l, body: b, journal: j, done: m.done, sound: o.Sound},
		receiver: &receiver{
			link: l, body: b, journal: j, main: m, freezer: halt, requests: asked, options: o,
			downlink: &downlink{link: l, body: b, journal: j, sound: o.Sound},
			greeted:  make(chan error, 1), lastIn: time.Now(),
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
	state, _ := d.body.now()
	return state
}

// SessionID returns the session id of the server's hello.
func (d *Device) SessionID() string { return d.link.agreed().session }

// PacketLength returns the length of a downlink packet, by the server's hello.
func (d *Device) PacketLength() time.Duration { return d.link.agreed().packet() }

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

// body is the present condition of the device, which its tasks share as those of the firmware do: its state, its
// microphone and its loudspeaker, and the check of the reply that they are in. mu guards all but traits and journal;
// what it holds has no lock of its own.
type body struct {
	traits  traits
	journal *Journal

	mu      sync.Mutex
	state   State
	mode    Mode
	mic     microphone
	speaker loudspeaker
	check   replyCheck
}

func newBody(o Options, j *Journal) *body {
	t := o.Profile.traits()
	return &body{
		traits: t, journal: j, state: Connecting, mode: o.Mode,
		speaker: loudspeaker{
			player: player{limit: t.queue, dropOldest: t.dropOldest},
			mute:   o.Sound.NoDecode, pcm: o.Sound.PCM, keeps: t.noFlush, overheard: o.Sound.Room != nil, memory: o.memory(),
		},
		check: replyCheck{limits: o.Limits, violate: j.violate},
	}
}

func (b *body) now() (State, Mode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.mode
}

// until waits for a condition over the guarded fields; each change of one makes an event.
func (b *body) until(ctx context.Context, holds func() bool) error {
	from := b.journal.len()
	for {
		b.mu.Lock()
		ok := holds()
		b.mu.Unlock()
		if ok {
			return nil
		}
		if _, err := b.journal.next(ctx, from); err != nil {
			return err
		}
		from++
	}
}

// enter moves the device to a state and does what entering it does. It reports
// false for a move to where it is and for one that the firmware refuses.
func (b *body) enter(now time.Time, next State) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == next || (b.state == Connecting && next == Speaking) {
		return false
	}
	b.state = next
	if next == Idle {
		b.mic.open = false
	}
	if next == Speaking {
		b.mic.open = b.mic.open && b.mode == Realtime
		if !b.traits.noFlush {
			b.flush(now)
		}
	}
	b.journal.add(Event{At: now, Kind: KindState, State: string(next)})
	return true
}

// openMic opens the microphone, and throws away what is unplayed if flush is set.
func (b *body) openMic(now time.Time, flush bool) {
	b.mu.Lock()
	if flush {
		b.flush(now)
	}
	b.mic.open = true
	b.mu.Unlock()
	b.journal.add(Event{At: now, Kind: KindState, State: string(Listening), Text: "microphone on"})
}

// flush empties the playback queue. The caller holds mu.
func (b *body) flush(now time.Time) {
	flushed := b.speaker.flush(now, b.state == Speaking)
	b.mic.stamps.waiting = nil
	b.journal.count(func(s *Stats) { s.Flushed += flushed })
}

// freezer stops all of a device whose tools freeze it: its receiver and its microphone, while a tool runs.
type freezer struct {
	on    bool
	body  *body
	awake chan struct{} // holds one token while nothing may be read
}

// pass waits while the device is frozen.
func (f *freezer) pass() {
	f.awake <- struct{}{} // at the latest when Close has ended the tool
	<-f.awake
}

// freeze stops the device until thaw is called.
func (f *freezer) freeze() (thaw func()) {
	if !f.on {
		return func() {}
	}
	f.awake <- struct{}{}
	began := time.Now()
	f.body.mu.Lock()
	f.body.mic.frozen = true
	f.body.mu.Unlock()
	return func() {
		f.body.mu.Lock()
		f.body.mic.frozen = false
		f.body.check.forgive(time.Since(began))
		f.body.mu.Unlock()
		<-f.awake
	}
}
