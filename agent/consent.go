package agent

import (
	"context"
	"strings"
	"time"

	"xiaozhi/internal/text/intent"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// consentTime is how long a yes counts after the question.
const consentTime = time.Minute

// consent is what the user was asked to allow.
type consent struct {
	call   providers.ToolCall
	action string // the call, as words
	until  time.Time
}

// consented is an order to answer the user's words, if a question is open and
// they answer it. Whatever else is said closes the question: nothing is done.
func (c *Conversation) consented(o order) order {
	asked := c.asked
	c.asked = nil
	if asked == nil || time.Now().After(asked.until) {
		return o
	}
	o.asked = asked
	switch intent.YesNo(o.text, asked.action) {
	case intent.Yes:
		o.consent = &asked.call
	case intent.No:
		o.reply = c.o.Prompts.Phrase(prompts.ConsentNo, o.language)
	case intent.Unclear:
	}
	return o
}

// askAgain opens the question again that an answer had closed which is undone:
// the answer is still being given.
func (c *Conversation) askAgain(undone order) {
	if undone.asked != nil {
		c.asked = undone.asked
	}
}

// question asks the user to allow a call, after all else that the turn says.
func (t *turn) question(ctx context.Context) error {
	if t.asked == nil {
		return nil
	}
	text := t.o.Prompts.Phrase(prompts.ConsentAsk, t.order.language, "action", t.action)
	t.asking = text
	if i := strings.IndexAny(text, "?？"); i >= 0 {
		t.asking = text[:i]
	}
	return t.sayOwn(ctx, text)
}

// questionHeard reports whether the user has heard what is to be allowed, so that
// an answer counts: some do not wait for the end.
func (t *turn) questionHeard() bool {
	return t.asking != "" && strings.Contains(answerText(t.out.messages), t.asking)
}
