package agent

import (
	"context"
	"sync"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/prompts"
)

// This file says aloud that a part is late (voice.md, behaviour 40): nobody sits
// in silence for longer than three seconds, and whatever comes late is still
// answered.

const (
	// slowAfter is how long nothing may be heard after the end of speech before it
	// is said that the recogniser, the model or the voice is slow.
	slowAfter = 2500 * time.Millisecond
	// slowGrace is how long each of them may take in any case, however much of that
	// time the others have used.
	slowGrace = 400 * time.Millisecond
)

// slowIn is how long a part that begins now may give nothing before it is said,
// when nothing was heard since then.
func (o *Options) slowIn(since time.Time) time.Duration {
	if since.IsZero() {
		return o.SlowAfter
	}
	return max(o.SlowAfter-time.Since(since), min(slowGrace, o.SlowAfter))
}

// waitAloud says, once in a turn, that the model takes a while, if nothing has
// been heard for too long. The caller calls stop once, when there is something to
// be heard, or will not be.
func (t *reply) waitAloud(ctx context.Context) (stop func()) {
	if t.order.notice != nil || t.o.SlowAfter < 0 || t.excused {
		return func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if t.floor.awaitOpen(ctx) != nil {
			return
		}
		began := time.Now()
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		for left := t.slowLeft(began); left > 0; left = t.slowLeft(began) {
			if wait(ctx, timer, left) != nil {
				return
			}
		}
		t.excused = true
		_ = t.sayPhrase(ctx, max(0, len(t.steps)-1), prompts.SlowLLM) // it fails where the turn ends
	})
	return sync.OnceFunc(func() {
		cancel(turn.ErrDone)
		wg.Wait()
	})
}

// slowLeft is how much longer a model that was asked then may give nothing.
func (t *reply) slowLeft(began time.Time) time.Duration {
	quiet, ok := t.speaker.quietSince()
	switch {
	case !ok:
		return fillerAgain // something is being said
	case quiet.IsZero():
		return time.Until(t.tooLong(began))
	case quiet.Before(began):
		quiet = began
	}
	return time.Until(quiet.Add(t.o.SlowAfter))
}

// tooLong is when the user has heard nothing for too long in a turn in which
// nothing was heard yet, for a part that has worked since then.
func (t *reply) tooLong(began time.Time) time.Time {
	at := began.Add(min(slowGrace, t.o.SlowAfter))
	if silent := t.timing.silentSince(); silent.IsZero() {
		return began.Add(t.o.SlowAfter)
	} else if due := silent.Add(t.o.SlowAfter); due.After(at) {
		return due
	}
	return at
}

// phraseWithin is how long the synthesiser may take for a phrase that is there
// as a sound, and passingWithin for one that says that something is slow.
const (
	phraseWithin  = 1500 * time.Millisecond
	passingWithin = 300 * time.Millisecond
)

// awaitSound waits for the first sound of a sentence. When it does not come in
// time, a phrase is played from its embedded sound instead, and of any other
// sentence it is said, once in a turn, that the voice is slow.
func (s *speaker) awaitSound(ctx context.Context, from *supply) (instead bool, err error) {
	if from.pieces == nil || s.o.SlowAfter < 0 {
		return false, nil
	}
	within := s.o.SlowAfter
	switch {
	case from.fallback != "" && len(prompts.Sound(from.fallback, from.language)) > 0:
		instead = true
		if within = min(within, phraseWithin); passing(from.fallback) {
			within = passingWithin
		}
	case s.excused:
		return false, nil
	}
	if err := s.floor.awaitOpen(ctx); err != nil {
		return false, err
	}
	if !instead && s.floor.firstFrame().IsZero() {
		within = s.o.slowIn(s.timing.silentSince())
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-from.begun:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-timer.C:
	}
	u := from.utterable
	if !instead {
		s.excused = true
		u.sentence = sentence{display: s.o.Prompts.Phrase(prompts.SlowTTS, u.language), language: u.language, fallback: prompts.SlowTTS}
	}
	u.length = new(soundLength)
	s.log.Warn("speech synthesis is slow", "tts", s.o.TTS.Name(), "phrase", u.fallback)
	return instead, s.sound(ctx, u, u.fallback)
}
