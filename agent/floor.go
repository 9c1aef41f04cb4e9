package agent

import (
	"context"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/wire"
)

// floor is one turn's right to speak. The turn's goroutines speak through it,
// and the conversation takes it away: after cut, undo or stop nothing of the
// turn can reach the device any more. All methods may be called at the same time.
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

	granted chan struct{} // closed when the turn may be seen and heard, or never will be

	mu        sync.Mutex
	trial     bool // nothing of the turn may reach the device yet
	wanted    bool // the turn would have begun to speak
	paused    bool // no frame leaves for the moment
	resumed   time.Time
	waiting   bool // a frame was encoded and is not handed over yet
	firm      bool // voice does not cut it
	closed    bool
	committed bool // something irrevocable was done: the turn cannot be undone
	started   time.Time
	firstOut  time.Time      // when the first frame left
	enc       *audio.Encoder // made with the first frame that needs it
	pacer     *audio.Pacer
	buf       []byte
	strange   bool // the device's decoder is not where enc is: it got other packets, or not all of enc's
	spoken    []spokenSentence
	held      []wire.Message // what may be shown when the turn can no more be undone
	shown     bool           // a chunk was passed on
}

// spokenSentence is how far a sentence got.
type spokenSentence struct {
	utterable
	frames int  // handed over so far
	whole  bool // the last of its frames was handed over
}

func newFloor(out wire.Outbox, turn uint64, format audio.Format, lead int) *floor {
	f := newTrialFloor(out, turn, format, lead)
	f.grant()
	return f
}

// newTrialFloor makes a floor that lets nothing through before grant.
func newTrialFloor(out wire.Outbox, turn uint64, format audio.Format, lead int) *floor {
	return &floor{
		out: out, turn: turn, format: format, lead: lead, pacer: audio.NewPacer(format.Frame, lead),
		granted: make(chan struct{}), trial: true,
	}
}

// grant ends the trial: what the turn has ready is let through. It reports
// whether tts start was sent.
func (f *floor) grant() (began bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.trial {
		return false
	}
	f.endTrial()
	held := f.held
	f.held = nil
	for _, m := range held {
		if m.Kind == wire.MessageTTSStart {
			f.open()
			continue
		}
		f.pass(m)
	}
	return f.wanted
}

// recall puts a turn on trial that nobody has heard anything of, until grant. It
// reports whether that was still possible.
func (f *floor) recall() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.trial || !f.started.IsZero() {
		return false
	}
	f.trial, f.granted = true, make(chan struct{})
	return true
}

// await waits until the turn may be heard, or never will be.
func (f *floor) await(ctx context.Context) error {
	f.mu.Lock()
	granted := f.granted
	f.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endTrial lets those go on who wait for it. The caller holds mu.
func (f *floor) endTrial() {
	if f.trial {
		f.trial = false
		close(f.granted)
	}
}

// close takes the floor away for good. The caller holds mu.
func (f *floor) close() {
	if f.spreads {
		f.phases.giveBack(f.slot)
		f.spreads = false
	}
	f.closed = true
	f.endTrial()
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

// hold makes the turn one that voice does not cut.
func (f *floor) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.firm = true
}

// holds reports whether voice does not cut the turn.
func (f *floor) holds() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.firm
}

// start sends tts start, once. It reports whether it was sent just now.
func (f *floor) start() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.started.IsZero() {
		return false
	}
	if f.trial {
		if !f.wanted {
			f.wanted = true
			f.held = append(f.held, wire.Message{Kind: wire.MessageTTSStart})
		}
		return false
	}
	f.open()
	return true
}

// open sends tts start and what had to wait for it. The caller holds mu.
func (f *floor) open() {
	f.started, f.committed = time.Now(), true
	f.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: f.turn})
	for _, m := range f.held {
		f.shown = true
		f.out.Send(m)
	}
	f.held = nil
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

// commit makes the turn one that cannot be undone, because a tool is about to
// run. False: it was undone already.
func (f *floor) commit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.committed = f.committed || !f.closed
	return !f.closed
}

// undo takes the floor away if nothing irrevocable was done yet.
func (f *floor) undo() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.committed || f.closed {
		return false
	}
	f.close()
	return true
}

// send passes a message of the turn on while it has the floor. A chunk of the
// answer waits for tts start: before it, the turn may still be undone.
func (f *floor) send(m wire.Message) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	m.Turn = f.turn
	if f.trial {
		f.held = append(f.held, m)
		return true
	}
	f.pass(m)
	return true
}

// pass passes a message on, or holds a chunk back until tts start. The caller
// holds mu.
func (f *floor) pass(m wire.Message) {
	if m.Kind == wire.MessageChunk && f.started.IsZero() {
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

// stop ends the reply in good order: the start/stop pair is completed, unless
// the turn is still on trial.
func (f *floor) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if f.trial {
		f.close()
		return
	}
	if f.started.IsZero() {
		f.open()
	}
	if n := len(f.spoken); n > 0 {
		f.spoken[n-1].whole = true
	}
	f.close()
	f.committed = true
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

// wants reports whether the turn would have begun to speak.
func (f *floor) wants() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.trial && f.wanted && !f.closed
}

// gone reports whether the turn has lost the floor.
func (f *floor) gone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}
