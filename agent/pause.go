package agent

import (
	"time"

	"xiaozhi/internal/text/intent"
)

// The figures of a learned pause. What a talker needs lies a little above the
// pauses that he makes: they vary.
const (
	pauseMargin  = 150 * time.Millisecond  // waited beyond the pause that was learned
	pauseLimit   = 2500 * time.Millisecond // no silence has to be longer, however slow the talker
	pauseStep    = 500 * time.Millisecond  // most that one pause teaches: it may have been a thought of its own
	pauseFast    = 10                      // turns in a row without a long pause until all is forgotten
	pauseFading  = 5                       // and from here on it is forgotten little by little
	pauseUnended = 2                       // how many times longer the silence after an unfinished text has to be
)

// learnedPause is how long the people at one device pause within what they
// say, and so how long a silence must be until their turn is over (voice.md
// 1.1, behaviour 12). Its zero value has learned nothing. It has no clock: the
// owner tells it what happened, in audio time. It is for one goroutine.
type learnedPause struct {
	need time.Duration // upper part of the pauses that were heard; 0 when none was
	fast int           // turns in a row without a long pause; -1 while a turn with one goes on
}

// delay is how long the silence after a text must be to commit the turn, from
// the last voiced sample. It is never shorter than base: with nothing learned
// it is base after a text that is or may be finished, twice base after one
// that is not. A learned pause raises both, a finished text by half of it only,
// for nobody likes to wait after "stop". It never raises above 2.5 s.
func (p *learnedPause) delay(base time.Duration, f intent.Completeness) time.Duration {
	raise := max(p.need+pauseMargin-base, 0)
	if p.need == 0 {
		raise = 0
	}
	if p.fast > pauseFading {
		raise = raise * time.Duration(pauseFast-p.fast) / (pauseFast - pauseFading)
	}
	d := base + raise
	switch f {
	case intent.Finished:
		d = base + raise/2
	case intent.Unfinished:
		d *= pauseUnended
	case intent.Undecided:
	}
	return max(base, min(d, pauseLimit))
}

// paused tells of a pause within an utterance: there was silence of the length d
// (at least the trigger's), then the user went on before the turn was committed.
func (p *learnedPause) paused(d time.Duration) { p.learn(d, 5) }

// cutOff tells that the user went on right after the turn had been committed, d
// after the last voiced sample. It teaches more than a pause that was waited
// for: this time we were wrong.
// Who speaks much later has not paused but waits for an answer.
func (p *learnedPause) cutOff(d time.Duration) {
	if d <= pauseLimit {
		p.learn(d, 7)
	}
}

// learn moves the learned pause up to d by weight tenths of the way. One that is
// a little shorter draws it down by a tenth only, and a mere breath teaches
// nothing: who pauses long now and then wants patience all the time.
func (p *learnedPause) learn(d time.Duration, weight time.Duration) {
	if d <= 0 {
		return
	}
	if d < p.need/4*3 {
		return
	}
	p.fast = -1
	d = min(d, pauseLimit-pauseMargin)
	if d < p.need {
		weight = 1
	}
	p.need += max(min((d-p.need)*weight/10, pauseStep), -pauseStep)
}

// turn tells that a committed turn has ended. Ten of them without a long pause
// make us forget what was learned.
func (p *learnedPause) turn() {
	if p.fast++; p.fast >= pauseFast {
		*p = learnedPause{}
	}
}
