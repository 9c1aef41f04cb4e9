package generation

import (
	"regexp"
	"strings"
	"sync/atomic"
)

// Unopened knows whether the thoughts of a model begin without a tag. Its zero value is ready, and
// may be used by any number of goroutines at once.
type Unopened struct{ seen atomic.Bool }

// thinkers are models whose templates begin the thought in the prompt, so that servers that do not
// tell thoughts apart give its end only.
var thinkers = regexp.MustCompile(`(?i)(^|[^a-z])(r1|qwq)([^a-z0-9]|$)|thinking`)

// Expect begins an answer: the filter takes its text for a thought if that is what the model's name
// says, or if an earlier answer has shown it.
func (u *Unopened) Expect(f *ThinkFilter, model string) {
	if u.seen.Load() || thinkers.MatchString(model) && !strings.Contains(model, "non-thinking") {
		f.Begin()
	}
}

// Learn ends an answer, before the filter is flushed. more says that there is more to it than the text: it
// calls tools, or was cut off. Then what came without an end is a thought.
func (u *Unopened) Learn(f *ThinkFilter, more bool) {
	switch {
	case more && f.maybe != nil:
		f.maybe = nil
	case f.lone:
		u.seen.Store(true)
	case f.maybe != nil:
		u.seen.Store(false) // it has answered without a thought
	}
}
