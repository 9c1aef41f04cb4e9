package speak

import (
	"cmp"
	"context"
	"time"
)

const (
	retryFull = 20 * time.Millisecond  // until a frame is offered again to a full outbox
	dryLead   = 20 * time.Millisecond  // so much before the device runs dry within a segment, its sound is ended softly
	dryAfter  = 120 * time.Millisecond // if nothing came for so long: a synthesiser that just keeps up has not stalled
)

// playout hands the frames of a reply to the player, when they are due. It belongs to the goroutine of Play, and while that
// waits for it to the clock's.
type playout struct {
	s       *Speaker
	timer   *time.Timer
	job     *job      // to encode and send the frame below
	playing *progress // of the segment that plays; nil: none

	frame  frame
	state  frameState
	packet []byte // nil when the turn is over
	err    error  // of making it
	left   time.Time
}

// frameState says how far a frame has come.
type frameState int

const (
	frameDue  frameState = iota // it waits for its time, or for the end of a pause
	frameMade                   // it is a packet
	frameSent                   // it was taken
)

// Play hands frames to the player when they are due, and after the last waits
// until the device has played them.
func (s *Speaker) Play(ctx context.Context) error {
	p := &playout{s: s, timer: time.NewTimer(time.Hour)}
	p.job = newJob(p.encode, p.send)
	defer p.timer.Stop()
	for {
		f, ok, err := p.next(ctx)
		switch {
		case err != nil:
			return err
		case !ok:
			return p.end(ctx)
		}
		if err := p.play(ctx, f); err != nil {
			return err
		}
	}
}

// next waits for a frame; false: there are no more. When the synthesiser stalls
// within a segment until the device is about to run dry, the device gets one
// frame in which the sound ends, so that it does not end with a click.
func (p *playout) next(ctx context.Context) (frame, bool, error) {
	select {
	case f, ok := <-p.s.frames:
		return f, ok, nil
	default:
	}
	if p.playing != nil {
		if left := time.Until(p.s.player.playoutEnd()) - dryLead; left >= dryAfter {
			p.timer.Reset(left)
			defer p.timer.Stop()
		}
	}
	for {
		select {
		case <-ctx.Done():
			return frame{}, false, context.Cause(ctx)
		case f, ok := <-p.s.frames:
			return f, ok, nil
		case <-p.timer.C:
			if p.playing != nil && !p.playing.whole.Load() {
				p.s.player.dry()
			}
		}
	}
}

// play waits until a frame is due, and hands it over.
func (p *playout) play(ctx context.Context, f frame) error {
	player := p.s.player
	if err := await(ctx, player.gate.begun); err != nil {
		return err
	}
	if player.playoutEnd().IsZero() { // it has not begun
		if err := player.clock.admit(ctx); err != nil {
			return err
		}
	}
	ready := time.Now()
	due, scheduled := player.due(ready, p.s.o.Guard)
	if f.packet == nil {
		player.prepare() // here, where there is time
	}
	p.frame, p.state = f, frameDue
	for at := due; p.state != frameSent; at = time.Now().Add(retryFull) {
		if err := cmp.Or(p.at(ctx, at), p.err); err != nil {
			return err
		}
	}
	if due.Before(ready) {
		due = ready // it was not there earlier
	}
	if scheduled { // else it is the first of all, which nothing waits for
		player.late(p.left.Sub(due))
	}
	return nil
}

// at has the frame encoded and sent at that time.
func (p *playout) at(ctx context.Context, due time.Time) error {
	if time.Until(due) > 0 {
		return p.s.player.clock.do(ctx, p.job, due)
	}
	p.encode()
	p.send()
	return nil
}

// encode makes the packet, when it is due and not before: a frame that is encoded and then not sent would leave the encoder
// ahead of the device's decoder. So does it while the reply is paused.
func (p *playout) encode() {
	player, f := p.s.player, p.frame
	if p.state != frameDue || player.halted() {
		return
	}
	if f.begins != nil {
		player.beginSegment(*f.begins)
		p.playing = f.begins.progress
	}
	p.state = frameMade
	if f.packet != nil {
		p.packet, p.err = player.passthrough(f.packet), nil
		return
	}
	if f.level != nil {
		f.level.apply(f.pcm, f.begins != nil)
	}
	p.packet, p.err = player.encode(f.pcm)
	p.s.pool.frames.put(f.pcm)
}

// send hands the packet over.
func (p *playout) send() {
	if p.state == frameMade && p.err == nil && (p.packet == nil || p.s.player.frame(p.packet)) {
		p.state, p.left = frameSent, time.Now()
	}
}

// end waits until what was sent has been played.
func (p *playout) end(ctx context.Context) error {
	for {
		end := p.s.player.playoutEnd()
		if end.IsZero() {
			return nil
		}
		if err := p.wait(ctx, time.Until(end.Add(p.s.o.StopAfter))); err != nil {
			return err
		}
		if p.s.player.playoutEnd().Equal(end) { // else a pause has added its soft end
			return nil
		}
	}
}

// wait sleeps for d, or until ctx ends.
func (p *playout) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	p.timer.Reset(d)
	select {
	case <-p.timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
