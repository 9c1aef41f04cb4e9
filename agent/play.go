package agent

import (
	"context"
	"time"
)

const (
	retryFull = 20 * time.Millisecond  // how soon a frame is offered again to a full outbox
	hushLead  = 20 * time.Millisecond  // so much before the device runs dry within a sentence, its sound is ended softly
	hushAfter = 120 * time.Millisecond // if nothing came for so long: a synthesiser that just keeps up has not stalled
)

// play hands frames to the floor when they are due, and after the last waits
// until the device has played them.
func (s *speaker) play(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f, ok, err := s.next(ctx, timer)
		switch {
		case err != nil:
			return err
		case !ok:
			return s.playout(ctx, timer)
		}
		if err := s.playFrame(ctx, timer, f); err != nil {
			return err
		}
	}
}

// next waits for a frame; false: there are no more. When the synthesiser stalls
// within a sentence until the device is about to run dry, the device gets one
// frame in which the sound ends, so that it does not end with a click.
func (s *speaker) next(ctx context.Context, timer *time.Timer) (speech, bool, error) {
	select {
	case f, ok := <-s.frames:
		return f, ok, nil
	default:
	}
	if s.playing != nil {
		if left := time.Until(s.floor.playoutEnd()) - hushLead; left >= hushAfter {
			timer.Reset(left)
			defer timer.Stop()
		}
	}
	for {
		select {
		case <-ctx.Done():
			return speech{}, false, context.Cause(ctx)
		case f, ok := <-s.frames:
			return f, ok, nil
		case <-timer.C:
			if s.playing != nil && !s.playing.whole.Load() {
				s.floor.hush()
			}
		}
	}
}

func (s *speaker) playFrame(ctx context.Context, timer *time.Timer, f speech) error {
	if err := s.floor.awaitStart(ctx); err != nil {
		return err
	}
	ready := time.Now()
	due := s.floor.due(ready)
	scheduled := !due.IsZero()
	if guard := s.floor.startedAt().Add(s.o.Guard); due.Before(guard) {
		due = guard
	}
	if f.packet == nil {
		s.floor.prepare() // here, where there is time
	}
	if err := wait(ctx, timer, time.Until(due)); err != nil {
		return err
	}
	for s.floor.halted() { // what is announced or encoded now would come too early, or never
		if err := wait(ctx, timer, retryFull); err != nil {
			return err
		}
	}
	if f.begins != nil {
		s.floor.sentenceStart(*f.begins)
		s.playing = f.begins.length
	}
	packet, err := s.packet(f)
	if err != nil {
		return err
	}
	if due.Before(ready) {
		due = ready // it was not there earlier
	}
	if !scheduled {
		due = time.Now() // the first of all, which nothing waits for
	}
	for packet != nil && !s.floor.frame(packet) {
		if err := wait(ctx, timer, retryFull); err != nil {
			return err
		}
	}
	s.floor.late(time.Since(due))
	return nil
}

// packet is a frame as it goes to the device; nil when the floor is gone. It is
// made when it is due and not before: a frame that is encoded and then not sent
// would leave the encoder ahead of the device's decoder.
func (s *speaker) packet(f speech) ([]byte, error) {
	if f.packet != nil {
		return s.floor.foreign(f.packet), nil
	}
	if f.voice != nil {
		if f.begins != nil {
			f.voice.leveller.Begin()
		}
		f.voice.leveller.Apply(f.pcm, f.voice.gain())
	}
	packet, err := s.floor.encode(f.pcm)
	select {
	case s.free <- f.pcm:
	default:
	}
	return packet, err
}

// playout waits until what was sent has been played.
func (s *speaker) playout(ctx context.Context, timer *time.Timer) error {
	for {
		end := s.floor.playoutEnd()
		if end.IsZero() {
			return nil
		}
		if err := wait(ctx, timer, time.Until(end.Add(s.o.StopAfter))); err != nil {
			return err
		}
		if s.floor.playoutEnd().Equal(end) { // else a pause has added its soft end
			return nil
		}
	}
}

// wait sleeps for d on the timer, or until ctx ends.
func wait(ctx context.Context, timer *time.Timer, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer.Reset(d)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
