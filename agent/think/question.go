package think

import (
	"context"
	"strings"

	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// question describes what the user is being asked to allow.
type question struct {
	call    *providers.ToolCall // nil: nothing
	action  string              // the call, as words
	begins  string              // how the question begins: so much of it has to be heard
	allowed bool                // the call that the user has allowed was made
}

// ask asks the user to allow a call, after all else that the turn says.
func (r *Responder) ask(ctx context.Context) error {
	if r.question.call == nil {
		return nil
	}
	words := r.o.Prompts.Phrase(prompts.ConsentAsk, r.lang(), "action", r.question.action)
	r.question.begins = words
	if i := strings.IndexAny(words, "?？"); i >= 0 {
		r.question.begins = words[:i]
	}
	return r.Say(ctx, words)
}

// Asked returns the call that the user was asked to allow, as words too, if the
// messages that were heard hold the question: some do not wait for its end. nil:
// there is none.
func (r *Responder) Asked(heard []providers.Message) (call *providers.ToolCall, action string) {
	if r.question.call == nil || r.question.begins == "" || !strings.Contains(Answer(heard), r.question.begins) {
		return nil, ""
	}
	return r.question.call, r.question.action
}
