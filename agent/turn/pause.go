package turn

import (
	"time"

	"xiaozhi/internal/text/intent"
)

// The figures of a learned pause. What a user needs lies a little above the
// pauses that the user makes: they vary.
const (
	pauseMargin  = 150 * time.Millisecond  // waited beyond the pause that was learned
	pauseLimit   = 2500 * time.Millisecond // no silence has to be longer, however slow the user
	pauseStep    = 500 * time.Millisecond  // most that one pause teaches: it may have been a thought of its own
	pauseFast    = 10                      // turns in a row without a long pause until all is forgotten
	pauseFading  = 5                       // and from here on it is forgotten little by little
	pauseUnended = 2                       // how many times longer the silence after an unfinished text has to be
)

// LearnedPause learns how long the people at one device pause within what they say,
// and so how long a silence must be until their turn is over
// (docs/behaviours.md 12). Its zero value has learned nothing.
type LearnedPause struct {
	Need time.Duration // upper part of the pauses that were heard; 0: none
	Fast int           // turns in a row without a long pause; -1 while a turn with one goes on
}

// Delay returns how long the silence after a text must be to end the utterance,
// from the last voiced sample. It is base if nothing was learned, twice base
// after an unfinished text. A learned pause raises both, by half of it only
// after a finished text. It is never below base or above 2.5 s.
func (p *LearnedPause) Delay(base time.Duration, c intent.Completeness) time.Duration {
	raise := max(p.Need+pauseMargin-base, 0)
	if p.Need == 0 {
		raise = 0
	}
	if p.Fast > pauseFading {
		raise = raise * time.Duration(pauseFast-p.Fast) / (pauseFast - pauseFading)
	}
	d := base + raise
	switch c {
	case intent.Finished:
		d = base + raise/2
	case intent.Unfinished:
		d *= pauseUnended
	case intent.Undecided:
	}
	return max(base, min(d, pauseLimit))
}

// Paused learns from a pause of length d within an utterance.
func (p *LearnedPause) Paused(d time.Duration) { p.learn(d, 5) }

// CutOff learns from a user who went on d after the last voiced sample, when
// the utterance had been taken to be over. It teaches more than a pause that was
// waited for. Nothing is learned from more than 2.5 s: that is no pause.
func (p *LearnedPause) CutOff(d time.Duration) {
	if d <= pauseLimit {
		p.learn(d, 7)
	}
}

// learn moves the learned pause up to d by weight tenths of the way. One that is
// a little shorter draws it down by a tenth only, and one below three quarters
// of it teaches nothing.
func (p *LearnedPause) learn(d, weight time.Duration) {
	if d <= 0 || d < p.Need/4*3 {
		return
	}
	p.Fast = -1
	d = min(d, pauseLimit-pauseMargin)
	if d < p.Need {
		weight = 1
	}
	p.Need += max(min((d-p.Need)*weight/10, pauseStep), -pauseStep)
}

// Answered learns that an utterance was answered. Ten in a row without a long
// pause make it forget all.
func (p *LearnedPause) Answered() {
	if p.Fast++; p.Fast >= pauseFast {
		*p = LearnedPause{}
	}
}
