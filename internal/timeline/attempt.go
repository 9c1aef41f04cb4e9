package timeline

import (
	"context"
	"time"
)

// Outcome says what came of asking one member of a chain.
type Outcome string

// The outcomes, as the record of a turn names them.
const (
	Answered Outcome = "answered" // its result was used
	Lost     Outcome = "lost"     // another one answered first
	Failed   Outcome = "failed"
	Left     Outcome = "left" // nobody wanted the result any more
)

// Attempt is one request to one member of a chain: whom, when, and what came of it.
type Attempt struct {
	Op       string // recognize, think, speak or converse
	Provider string
	Asked    time.Time
	First    time.Duration // until its first result; 0: there was none
	Took     time.Duration // until its end
	Outcome  Outcome
	Fault    string // why it failed

	Tokens     Tokens        // of a model, as it says itself
	Cached     int           // of Tokens.Prompt, what it had kept
	Characters int           // of a voice
	Sound      time.Duration // of a recogniser
}

// maxAttempts is how many attempts of a turn are kept: the later ones are dropped.
const maxAttempts = 48

type attemptsKey struct{}

// WithAttempts returns a context in which chains tell note of each attempt. note may be
// called by several goroutines at the same time.
func WithAttempts(ctx context.Context, note func(Attempt)) context.Context {
	return context.WithValue(ctx, attemptsKey{}, note)
}

// NoteAttempt tells whoever wants to know of the attempts of a context.
func NoteAttempt(ctx context.Context, a Attempt) {
	if note, ok := ctx.Value(attemptsKey{}).(func(Attempt)); ok {
		note(a)
	}
}

// Attempt notes an attempt of the turn.
func (t *Turn) Attempt(a Attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.attempts) < maxAttempts {
		t.attempts = append(t.attempts, a)
	}
}

// Attempts returns the attempts of the turn so far, those of its utterance first.
func (t *Turn) Attempts() []Attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(append([]Attempt(nil), t.of.Attempts...), t.attempts...)
}
