// Package rules is the small brain that needs no language model: a table of
// things people say to a speaker, in Chinese and English, and what follows from
// each. It works in steps like a model (it asks for a tool, and turns the
// tool's result into a sentence) but it is pure arithmetic on the request: it
// keeps nothing, waits for nothing, and never fails.
//
// It has two lives. As the last member of the LLM chain
// (Generate) it does all it can, and says plainly that no language model is
// configured, or that it failed, for everything else. As the fast path beside a
// real model (Answer) it takes only stop, volume, brightness, next and time.
package rules

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// Options are the surroundings of a Brain. The zero value works, but says the
// ids of its phrases instead of their texts.
type Options struct {
	Prompts         func(id, lang string, args ...string) string // texts of PhraseIDs; nil gives the id back
	Name            string                                       // what the assistant calls itself; "" is 小智
	Now             func() time.Time                             // nil is time.Now
	Zone            *time.Location                               // of spoken times; nil is the machine's
	ModelConfigured bool                                         // a language model is configured, so that being asked means it failed
}

// Brain answers from rules. It is safe for many goroutines at once.
type Brain struct {
	options Options
	english []rule
	chinese []rule
}

var _ providers.LLM = (*Brain)(nil)

// New makes a Brain.
func New(o Options) *Brain {
	if o.Prompts == nil {
		o.Prompts = func(id, _ string, _ ...string) string { return id }
	}
	if o.Name == "" {
		o.Name = "小智"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	return &Brain{options: o, english: compile(slices.Concat(english().Ways, english().Typed), englishExpr), chinese: compile(chinese().Ways, chineseExpr)}
}

// Name is "rules".
func (b *Brain) Name() string { return "rules" }

// Generate yields the whole step as one delta. What no rule covers is answered
// with the sentence that there is no language model, marked as a fallback. The
// only error is that of ctx.
func (b *Brain) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(providers.Delta{}, err)
			return
		}
		delta, ok := b.step(req, everything)
		if !ok {
			delta = providers.Delta{Text: b.say(b.noModel(), langOf(req)), Fallback: true}
		}
		delta.Provider = b.Name()
		yield(delta, nil)
	}
}

// Answer returns the fast path beside a language model: the step, if it is one of
// stop, volume, brightness, next and time and the tools for it are there; else
// false, and the model is to be asked. It follows up only on its own calls.
func (b *Brain) Answer(req providers.LLMRequest) (providers.Delta, bool) {
	delta, ok := b.step(req, fastOnly)
	delta.Provider = b.Name()
	return delta, ok
}

func (b *Brain) noModel() string {
	if b.options.ModelConfigured {
		return phraseLLMDown
	}
	return phraseNoLLM
}

// say returns the text of a phrase.
func (b *Brain) say(id string, lang text.Lang, args ...string) string {
	return b.options.Prompts(id, string(lang), args...)
}

// rule is one way of saying something.
type rule struct {
	expr *regexp.Regexp
	want intent
}

// compile makes the patterns of one language ready for matching.
func compile(patterns []pattern, expr func(string) string) []rule {
	rules := make([]rule, 0, len(patterns))
	for _, p := range patterns {
		rules = append(rules, rule{regexp.MustCompile(expr(p.text)), p.want})
	}
	return rules
}
