package speak

import (
	"context"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
)

// Player passes the messages and the sound of one turn on to the device, as far
// as its gate lets it, and knows what was heard. After Stop or Cut nothing of the
// turn reaches the device any more.
//
// # Concurrency
//
// All methods may be called at the same time. The conversation alone calls Open,
// Hold, Start, Pause, Resume, Stop and Cut.
type Player struct {
	out    wire.Outbox
	turn   uint64
	format audio.Format
	taps   Taps
	clock  *Clock // of all replies

	mu       sync.Mutex
	gate     gate
	sound    encoder
	ledger   ledger
	pacer    *audio.Pacer
	place    *place    // in the grid of clock, once a frame has left
	firstOut time.Time // when the first frame left
	resumed  time.Time // the end of the last pause
	stopped  time.Time // when tts stop was sent
	cut      bool      // before all was played
}

// Taps hear what is sent to the device. A nil one hears nothing.
type Taps struct {
	FarEnd   *echo.FarEnd
	SelfEcho *echo.SelfEcho
	Sent     *audio.Packets // as it went; whoever made it reads it when the turn is over
}

// NewPlayer makes a player with an open gate that sends lead frames ahead.
func NewPlayer(out wire.Outbox, turn uint64, format audio.Format, coding audio.Coding, lead int) *Player {
	return &Player{
		out: out, turn: turn, format: format, clock: new(Clock), gate: newGate(), sound: encoder{format: format, coding: coding},
		ledger: ledger{frame: format.Frame}, pacer: audio.NewPacer(format.Frame, lead),
	}
}

// Follow has the player hear with taps, send when clock says, which other replies share, and begin with what the pacer of an earlier reply has learned;
// nil: there was none. It is called before anything is sent.
func (p *Player) Follow(taps Taps, clock *Clock, before *audio.Pacer) {
	p.taps, p.clock = taps, clock
	if before != nil {
		p.pacer.Inherit(before)
	}
}

// Pacer returns the pacer, which has learned of the way to the device, for the next reply.
func (p *Player) Pacer() *audio.Pacer { return p.pacer }

// Hold shuts the gate until Open. Nothing of the turn may have been heard.
func (p *Player) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate.shut()
}

// Open opens the gate: what waits for nothing else is passed on.
func (p *Player) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate.open(p.out.Send)
}

// AwaitOpen waits until the turn may be seen and heard, or never will be.
func (p *Player) AwaitOpen(ctx context.Context) error {
	p.mu.Lock()
	opened := p.gate.opened
	p.mu.Unlock()
	return await(ctx, opened)
}

// Certain returns a channel that is closed when the turn may be seen and heard. It
// stays open if that never comes.
func (p *Player) Certain() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gate.certain
}

// await waits until done is closed.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Announce notes that tts start is asked for. It reports whether it was not
// asked for before. seen: only if the turn may be seen by now.
func (p *Player) Announce(seen bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (!seen || p.gate.state == gateOpen) && p.gate.announce()
}

// Start sends tts start, once, and what had to wait for it.
func (p *Player) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.state == gateOpen || p.gate.state == gateShut {
		begin(p)
	}
}

// Send passes a message of the turn on, as soon as it may be seen. The words of the user are not
// passed on once the reply has begun.
func (p *Player) Send(m wire.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.Turn = p.turn
	p.gate.pass(m, p.out.Send)
}

// Reword replaces the words of the user, which were a guess, while they wait to be shown.
func (p *Player) Reword(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate.reword(words)
}

// Pause lets no frame through until Resume. What plays ends softly.
func (p *Player) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.state != gateStarted {
		return
	}
	if !p.sound.waiting && p.pacer.Lead(time.Now()) > 0 {
		p.fadeOut() // else there is nothing that plays
	}
	p.gate.state = gatePaused
	p.pacer.Pause()
}

// Resume goes on where Pause stopped.
func (p *Player) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.state == gatePaused {
		p.gate.state, p.resumed = gateStarted, time.Now()
	}
}

// Stop ends the reply in good order: the start/stop pair is completed.
func (p *Player) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.gate.state {
	case gateClosed:
		return
	case gateShut, gateOpen:
		begin(p)
	case gateStarted, gatePaused:
	}
	p.ledger.endSegment()
	p.close()
	p.stopped = time.Now()
	p.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: p.turn})
}

// Cut ends the reply at once. If tts start was sent, one silent frame (only if a
// frame was sent) and tts stop follow.
func (p *Player) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	started := p.gate.state == gateStarted || p.gate.state == gatePaused
	p.close()
	if !started {
		return
	}
	m := wire.Message{Kind: wire.MessageTTSStop, Turn: p.turn, Cut: true}
	if p.sound.waiting || p.out.Lag() > 0 {
		p.sound.outOfSync = true // what waits is thrown away: the closing frame must not build on it
	}
	if !p.firstOut.IsZero() {
		m.Closing = p.sound.closing()
	}
	p.stopped, p.cut = time.Now(), true
	p.out.Send(m)
}

// close ends the turn's way to the device. The caller holds mu.
func (p *Player) close() {
	p.place.release()
	p.place = nil
	p.gate.close()
}

// Heard returns what the user has heard by now of each step's segments that belong to
// the answer, and whether something that was begun or waits is missing.
func (p *Player) Heard(now time.Time, steps int) (texts []string, partial bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.heard(p.pacer.Heard(now), steps)
}

// Playing returns what the device plays by now, and has played not long before: the
// texts of the segments.
func (p *Player) Playing(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.playing(p.pacer.Heard(now))
}

// HeardBeside returns what the user has heard by now that is no part of the answer: a
// phrase that stands for one, or the reason why it is not whole.
func (p *Player) HeardBeside(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.beside(p.pacer.Heard(now))
}

// Showed reports whether a piece of the answer was passed on as text.
func (p *Player) Showed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gate.shown
}

// Played returns how much sound of the turn the device has played.
func (p *Player) Played(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pacer.Heard(now)
}

// HeardAloud returns how much the user has heard by now of sound that came with its own words.
func (p *Player) HeardAloud(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.aloud(p.pacer.Heard(now))
}

// Sent returns what has left when.
func (p *Player) Sent() timeline.Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := timeline.Sent{Start: p.gate.started, First: p.firstOut, Stop: p.stopped, Cut: p.cut}
	for _, g := range p.pacer.Gaps() {
		sent.Gaps = append(sent.Gaps, timeline.Gap(g))
	}
	return sent
}

// Counters returns what the pacer measured: frames, those that came too late for the
// device, and the least that it had left to play.
func (p *Player) Counters() (frames, underruns int, minLead time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pacer.Frames(), p.pacer.Underruns(), p.pacer.MinLead()
}

// begin sends tts start. The caller holds the player's lock.
func begin(p *Player) {
	p.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: p.turn})
	p.gate.start(time.Now(), p.out.Send)
}
