package agent

import (
	"context"
	"strings"

	"xiaozhi/prompts"
)

// question asks the user to allow a call, after all else that the turn says.
func (t *reply) question(ctx context.Context) error {
	if t.asked == nil {
		return nil
	}
	text := t.o.Prompts.Phrase(prompts.ConsentAsk, t.order.lang(), "action", t.action)
	t.asking = text
	if i := strings.IndexAny(text, "?？"); i >= 0 {
		t.asking = text[:i]
	}
	return t.sayOwn(ctx, text)
}

// questionHeard reports whether the user has heard what is to be allowed, so that
// an answer counts: some do not wait for the end.
func (t *reply) questionHeard() bool {
	return t.asking != "" && strings.Contains(answerText(t.out.messages), t.asking)
}
