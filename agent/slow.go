package agent

import (
	"context"
	"slices"
	"sync"
	"time"

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

// silentFrom is from when on the user of an utterance waits: who pauses for long
// himself is not surprised that we wait for the end of such a pause, and who hears
// a reply does not wait.
func (c *Conversation) silentFrom(u *utterance) time.Time {
	from := u.spoken
	for _, later := range []time.Time{u.ended.Add(-c.commitAfter()), c.lastSaid.at} {
		if later.After(from) {
			from = later
		}
	}
	return from
}

// waitAloud says, once in a turn, that the model takes a while, if nothing has
// been heard for too long. The caller calls stop once, when there is something to
// be heard, or will not be.
func (t *turn) waitAloud(ctx context.Context) (stop func()) {
	if t.order.notice != nil || t.o.SlowAfter < 0 || t.excused {
		return func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if t.floor.await(ctx) != nil {
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
		cancel(ErrDone)
		wg.Wait()
	})
}

// slowLeft is how much longer a model that was asked then may give nothing.
func (t *turn) slowLeft(began time.Time) time.Duration {
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
func (t *turn) tooLong(began time.Time) time.Time {
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
	if err := s.floor.await(ctx); err != nil {
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

// textSlow is what happens when the text of an utterance does not come: at
// first it is said, and at last the recogniser is given up.
func (c *Conversation) textSlow() {
	if c.state == Recognizing && slices.ContainsFunc(c.heard, func(u *utterance) bool { return u.final && bare(u.text.Text) != "" }) {
		c.dropSlow(true) // something was understood: that is answered
		c.answerHeard()
		return
	}
	if c.state == Recognizing && len(c.slow) == 0 && c.o.SlowAfter > 0 && c.o.SlowAfter < c.o.RecognizeTimeout {
		c.slow, c.heard = c.heard, nil
		for _, u := range c.slow {
			u.slow = true
		}
		c.textDue.Reset(c.textLeft())
		c.step(sigServer)
		c.begin(order{phrase: prompts.SlowASR, language: c.language(), timing: &timing{endOfSpeech: c.slow[len(c.slow)-1].spoken, silent: time.Now()}})
		return
	}
	if left := c.textLeft(); left > 0 {
		c.textDue.Reset(left) // somebody is speaking: nothing is said, and nothing given up
		return
	}
	c.giveUpText()
}

// textLeft is how much longer texts may take that are not there yet.
func (c *Conversation) textLeft() time.Duration {
	var left time.Duration
	for _, u := range slices.Concat(c.slow, c.heard) {
		if !u.final {
			left = max(left, c.o.RecognizeTimeout-time.Since(u.ended))
		}
	}
	return left
}

// textWithin is how long the text of an utterance is waited for.
func (c *Conversation) textWithin(u *utterance) time.Duration {
	if c.o.SlowAfter > 0 && len(c.slow) == 0 {
		return min(c.o.slowIn(c.silentFrom(u)), c.o.RecognizeTimeout)
	}
	return c.o.RecognizeTimeout
}

// slowReady reports whether what was said some time ago can be answered now.
func (c *Conversation) slowReady() bool {
	return len(c.slow) > 0 && !slices.ContainsFunc(c.slow, func(u *utterance) bool { return !u.final })
}

// answerSlow answers what was said some time ago.
func (c *Conversation) answerSlow() {
	c.forget()
	c.heard, c.slow = c.slow, nil
	c.textDue.Stop()
	o := c.understood()
	o.timing.silent = time.Now() // it was told meanwhile
	c.step(sigServer)
	c.begin(o)
}

// forgetSlow lets go of what was said some time ago.
func (c *Conversation) forgetSlow() {
	for _, u := range c.slow {
		u.cancel(ErrReplaced)
	}
	c.slow = nil
}

// dropSlow lets go of those that were said before and are still not understood:
// all of them, or those that were told to be late or may have been a cough over a
// reply.
func (c *Conversation) dropSlow(all bool) {
	c.heard = slices.DeleteFunc(c.heard, func(u *utterance) bool {
		drop := (all || u.slow || u.overlaps) && !u.final
		if drop {
			u.final = true // a text that comes all the same is void
			u.cancel(ErrReplaced)
		}
		return drop
	})
}
