package devicetest

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"xiaozhi/audio"

	"github.com/gorilla/websocket"
)

// jobsLimit is how many messages may wait for the main task. A device would run
// out of memory; here what comes on top is dropped and noted as RuleFlood.
const jobsLimit = 1024

// job is work for the main task: a message to apply, or an act of the device's user.
type job struct {
	message *inbound
	at      time.Time // arrival of the message
	act     func() error
	done    chan error // of an act; holds one
}

// Device is a simulated speaker with an open channel. All methods may be called
// at the same time, but those that act must not be called from inside a Tool:
// they wait for the main task, which the tool holds.
type Device struct {
	opt     Options
	traits  traits
	ws      *websocket.Conn
	journal *journal

	cancel  context.CancelFunc // ends tools and the main task
	work    sync.WaitGroup     // reader and main task
	writing chan struct{}      // holds one token: the right to write to ws
	awake   chan struct{}      // holds one token while nothing may be read: that of a tool of a device that Freezes
	jobs    chan job           // read by the main task alone
	greeted chan error         // the outcome of the hello; holds one
	gone    chan struct{}      // closed by the reader: nothing more comes in
	done    chan struct{}      // closed by the main task at its end

	relisten *time.Timer // main task: listen start once the sound is played

	mu       sync.Mutex // guards all below
	state    State
	mode     Mode
	mic      bool
	frozen   bool // by a tool: the microphone is deaf
	session  string
	hasHello bool
	rate     int           // Hz of downlink
	length   time.Duration // of a downlink packet
	decoder  *audio.Decoder
	outlived *audio.Decoder // that of a reply which was cut: its end is judged though it is not played
	ear      *audio.Decoder // decoder's twin at 16 kHz, of a device with a Room
	scratch  []int16        // what the decoders write into
	player   player
	turn     turn
	stats    Stats
	lastIn   time.Time     // last text or binary message
	hushed   time.Duration // silence up to now in what the microphone gets
	stamps   stamps        // of packets that were played, not yet echoed
	stamped  uint32        // the largest timestamp so far
	requests requests      // MCP ids seen and calls in flight
	vision   Vision
	states   map[string][]byte // of things, as sent last
	closed   bool              // by Close or CloseTCP
}

func newDevice(o Options, ws *websocket.Conn) *Device {
	t := o.Profile.traits()
	d := &Device{
		opt: o, traits: t, ws: ws, journal: newJournal(),
		writing: make(chan struct{}, 1), awake: make(chan struct{}, 1), jobs: make(chan job, jobsLimit),
		greeted: make(chan error, 1), gone: make(chan struct{}), done: make(chan struct{}),
		relisten: time.NewTimer(time.Hour),
		state:    Connecting, mode: o.Mode, lastIn: time.Now(),
		player: player{limit: t.queue, dropOldest: t.dropOldest},
	}
	d.relisten.Stop()
	d.turn = turn{tolerance: o.Tolerance, maxLead: o.MaxLead, strictLead: o.StrictLead, violate: d.journal.violate}
	d.requests = newRequests()
	d.states = make(map[string][]byte)
	ws.SetReadLimit(readLimit)
	ws.SetCloseHandler(func(int, string) error { return nil }) // the firmware does not answer a Close (2.5)
	ws.SetPingHandler(d.pong)
	return d
}

// CloseTCP drops the connection as the firmware does: no Close frame, no wait.
func (d *Device) CloseTCP() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.ws.Close() // what is to be closed is gone either way
}

// Close drops the connection and waits until the device is at rest. It may be called again.
func (d *Device) Close() {
	d.CloseTCP()
	d.cancel()
	d.work.Wait()
}

// Events are all events so far.
func (d *Device) Events() []Event {
	d.journal.mu.Lock()
	defer d.journal.mu.Unlock()
	return slices.Clone(d.journal.events)
}

// Watch gives every event, past and to come, until ctx or the connection ends.
func (d *Device) Watch(ctx context.Context) iter.Seq[Event] { return d.journal.all(ctx) }

// Wait returns the first event that matches, among those after the one that Wait
// last returned. It fails when ctx or the connection ends first.
func (d *Device) Wait(ctx context.Context, match func(Event) bool) (Event, error) {
	return d.journal.wait(ctx, &d.journal.cursor, match)
}

// WaitText waits, as Wait does, for a message of the given type, and state if that is not empty.
func (d *Device) WaitText(ctx context.Context, kind, state string) (Event, error) {
	return d.Wait(ctx, func(e Event) bool {
		return e.Kind == KindReceived && e.Type == kind && (state == "" || e.State == state)
	})
}

// WaitState returns when the device is in a state: at once if it is there already.
func (d *Device) WaitState(ctx context.Context, want State) error {
	return d.until(ctx, func() bool { return d.state == want })
}

// WaitMic returns when the microphone is open.
func (d *Device) WaitMic(ctx context.Context) error {
	return d.until(ctx, func() bool { return d.mic })
}

// until waits for a condition over the guarded fields; each change of one makes an event.
func (d *Device) until(ctx context.Context, holds func() bool) error {
	from := d.journal.len()
	for {
		d.mu.Lock()
		ok := holds()
		d.mu.Unlock()
		if ok {
			return nil
		}
		if _, err := d.journal.next(ctx, from); err != nil {
			return err
		}
		from++
	}
}

// WaitReply returns the next complete reply, each one once.
func (d *Device) WaitReply(ctx context.Context) (*Reply, error) {
	e, err := d.journal.wait(ctx, &d.journal.replies, func(e Event) bool { return e.Kind == KindReply })
	return e.Reply, err
}

// State is the device's present state.
func (d *Device) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// SessionID is what the server's hello said.
func (d *Device) SessionID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session
}

// PacketLength is how long a downlink packet plays, by the server's hello.
func (d *Device) PacketLength() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.length
}

// Stats are the counters so far.
func (d *Device) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Violations are all breaches so far, with what is overdue at this moment.
func (d *Device) Violations() []Violation {
	d.mu.Lock()
	late := d.turn.overdue(time.Now())
	d.mu.Unlock()
	d.journal.mu.Lock()
	defer d.journal.mu.Unlock()
	return append(slices.Clone(d.journal.violations), late...)
}

// Done is closed when the connection is gone and all that came in has been applied.
func (d *Device) Done() <-chan struct{} { return d.done }
