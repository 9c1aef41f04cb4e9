package agent

import (
	"context"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/wire"
)

// floor passes the messages and the sound of one turn on to the device, as far as
// the conversation lets it: its gate is shut or open, then tts start is sent,
// then it may be paused, and at last it is stopped or cut. After that nothing of
// the turn reaches the device any more. All methods may be called at the same
// time; the conversation alone opens, holds, starts, pauses, stops and cuts.
type floor struct {
	out    wire.Outbox
	turn   uint64
	format audio.Format
	lead   int

	monitor  *echo.FarEnd   // hears what is sent; nil: nobody does
	loopback *echo.SelfEcho // so does it

	phases  *phases // of all replies; nil: this one keeps to itself
	slot    int     // of phases, while spreads
	spreads bool

	begun chan struct{} // closed when tts start was sent, or never will be

	mu        sync.Mutex
	opened    chan struct{} // closed when the turn may be seen and heard, or never will be
	shut      bool          // nothing of the turn may reach the device yet
	announced bool          // tts start was asked for: what comes now waits for it
	before    int           // how much of held was there when it was asked for
	paused    bool          // no frame leaves for the moment
	resumed   time.Time
	waiting   bool // a frame was encoded and is not handed over yet
	closed    bool
	started   time.Time
	firstOut  time.Time      // when the first frame left
	enc       *audio.Encoder // made with the first frame that needs it
	pacer     *audio.Pacer
	buf       []byte
	strange   bool // the device's decoder is not where enc is: it got other packets, or not all of enc's
	spoken    []spokenSentence
	held      []wire.Message // what waits for the gate, or for tts start
	shown     bool           // a chunk was passed on
}

// spokenSentence is how far a sentence got.
type spokenSentence struct {
	utterable
	frames int  // handed over so far
	whole  bool // the last of its frames was handed over
}

// newFloor makes a floor with an open gate.
func newFloor(out wire.Outbox, turn uint64, format audio.Format, lead int) *floor {
	f := &floor{
		out: out, turn: turn, format: format, lead: lead, pacer: audio.NewPacer(format.Frame, lead),
		opened: make(chan struct{}), begun: make(chan struct{}),
	}
	close(f.opened)
	return f
}

// hold shuts the gate, until open. Nothing of the turn may have been heard.
func (f *floor) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.shut || !f.started.IsZero() {
		return
	}
	f.shut, f.opened = true, make(chan struct{})
}

// open opens the gate: what waits for nothing else is passed on.
func (f *floor) open() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.shut {
		return
	}
	f.unlock()
	held := f.held
	f.held = nil
	for i, m := range held {
		if waitsForStart(m) || f.announced && i >= f.before {
			f.held = append(f.held, m)
			continue
		}
		f.out.Send(m)
	}
}

// unlock lets those go on that wait for the gate. The caller holds mu.
func (f *floor) unlock() {
	if f.shut {
		f.shut = false
		close(f.opened)
	}
}

// waitsForStart reports whether a message must not come before tts start.
func waitsForStart(m wire.Message) bool {
	return m.Kind == wire.MessageChunk || m.Kind == wire.MessageEmotion
}

// awaitOpen waits until the turn may be seen and heard, or never will be.
func (f *floor) awaitOpen(ctx context.Context) error {
	f.mu.Lock()
	opened := f.opened
	f.mu.Unlock()
	return await(ctx, opened)
}

// awaitStart waits until tts start was sent, or never will be.
func (f *floor) awaitStart(ctx context.Context) error { return await(ctx, f.begun) }

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// announce notes that tts start is asked for. It reports whether it was not
// asked for before.
func (f *floor) announce() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.announced || !f.started.IsZero() {
		return false
	}
	f.announced, f.before = true, len(f.held)
	return true
}

// close takes the floor away for good. The caller holds mu.
func (f *floor) close() {
	if f.spreads {
		f.phases.giveBack(f.slot)
		f.spreads = false
	}
	f.closed = true
	f.unlock()
	if f.started.IsZero() {
		close(f.begun)
	}
}

// spread keeps the frames of this turn out of the way of others'. The caller
// holds mu.
func (f *floor) spread() {
	if f.phases == nil {
		return
	}
	slot, move := f.phases.take(f.pacer.PlayoutEnd().Add(f.format.Frame/2), f.format.Frame)
	f.slot, f.spreads = slot, true
	f.pacer.Shift(move)
}

// pause lets no frame through until resume. It reports whether it was not
// paused before.
func (f *floor) pause() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paused || f.closed {
		return false
	}
	if !f.waiting && f.pacer.Lead(time.Now()) > 0 {
		f.soften() // else there is nothing that plays
	}
	f.paused = true
	f.pacer.Pause()
	return true
}

// resume goes on where pause stopped. It reports whether it was paused.
func (f *floor) resume() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.paused || f.closed {
		return false
	}
	f.paused, f.resumed = false, time.Now()
	return true
}

// halted reports whether the reply is paused.
func (f *floor) halted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paused && !f.closed
}

// start sends tts start, once, and what had to wait for it.
func (f *floor) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && f.started.IsZero() {
		f.begin()
	}
}

// begin sends tts start. The caller holds mu.
func (f *floor) begin() {
	f.started = time.Now()
	f.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: f.turn})
	for _, m := range f.held {
		f.shown = f.shown || m.Kind == wire.MessageChunk
		f.out.Send(m)
	}
	f.held = nil
	close(f.begun)
}

// startedAt is when tts start was sent; zero before.
func (f *floor) startedAt() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// firstFrame is when the first frame left; zero before.
func (f *floor) firstFrame() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.firstOut
}

// send passes a message of the turn on, as soon as it may be seen.
func (f *floor) send(m wire.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	m.Turn = f.turn
	if f.shut || f.started.IsZero() && (f.announced || waitsForStart(m)) {
		f.held = append(f.held, m)
		return
	}
	f.shown = f.shown || m.Kind == wire.MessageChunk
	f.out.Send(m)
}

// sentenceStart announces the sentence whose first frame is next.
func (f *floor) sentenceStart(s utterable) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if n := len(f.spoken); n > 0 {
		f.spoken[n-1].whole = true
	}
	f.spoken = append(f.spoken, spokenSentence{utterable: s})
	f.out.Send(wire.Message{Kind: wire.MessageSentenceStart, Turn: f.turn, Text: s.display})
}

// stop ends the reply in good order: the start/stop pair is completed.
func (f *floor) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if f.started.IsZero() {
		f.begin()
	}
	if n := len(f.spoken); n > 0 {
		f.spoken[n-1].whole = true
	}
	f.close()
	f.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: f.turn})
}

// cut takes the floor away at once. If tts start was sent, one silent frame
// (only if a frame was sent) and tts stop follow; it reports whether they did.
func (f *floor) cut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.close()
	if f.started.IsZero() {
		return false
	}
	m := wire.Message{Kind: wire.MessageTTSStop, Turn: f.turn, Cut: true}
	if f.waiting || f.out.Lag() > 0 {
		f.strange = true // what waits is thrown away: the closing frame must not build on it
	}
	if !f.firstOut.IsZero() && f.encoder() == nil {
		if n, err := f.enc.Silence(f.buf); err == nil {
			m.Closing = append([]byte(nil), f.buf[:n]...)
		}
	}
	f.out.Send(m)
	return true
}
