package timeline

import (
	"context"
	"slices"
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
	Part     int    // of the turn: the step of a model, the sentence of a voice, from one; 0: neither
	Provider string
	Asked    time.Time
	First    time.Duration // until its first result; 0: there was none
	Took     time.Duration // until its end
	Outcome  Outcome
	Fault    string // why it failed
	Void     bool   // it was made for an answer that was begun too early, and given up

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

// Of returns what notes attempts of one part of the turn.
func (t *Turn) Of(part int) func(Attempt) {
	return func(a Attempt) {
		a.Part = part
		t.Attempt(a)
	}
}

// Attempt notes an attempt of the turn.
func (t *Turn) Attempt(a Attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.Op == "speak" && a.Outcome == Answered {
		t.tts = a.Provider
	}
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

// The limits of what is kept of answers that were given up.
const (
	maxVoid = maxAttempts / 2 // attempts: the later ones are dropped
	voidAge = time.Minute     // before the turn that they are kept with
)

// Void holds the attempts of answers that were begun too early and given up, until the turn
// comes that was begun in their place. It is for one goroutine. Its zero value is ready.
type Void struct{ attempts []Attempt }

// Add takes the attempts of models and voices of a turn that was given up. Those of the
// recognisers belong to the words, which are answered after all.
func (v *Void) Add(t *Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.attempts[:min(len(t.attempts), maxVoid-len(v.attempts))] {
		a.Void = true
		v.attempts = append(v.attempts, a)
	}
}

// With returns the attempts of a turn with those that were given up before it, in the order in
// which they were made, and lets go of them.
func (v *Void) With(attempts []Attempt) []Attempt {
	void := v.attempts
	v.attempts = nil
	if len(attempts) == 0 {
		return nil
	}
	void = slices.DeleteFunc(void, func(a Attempt) bool { return attempts[0].Asked.Sub(a.Asked) > voidAge })
	return slices.SortedStableFunc(slices.Values(append(void, attempts...)), func(a, b Attempt) int { return a.Asked.Compare(b.Asked) })
}
