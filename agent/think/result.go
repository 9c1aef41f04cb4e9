package think

import (
	"context"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Messages returns the turn so far for the history, as if all of it was heard. Texts of strangers are not in it.
func (r *Responder) Messages() []providers.Message { return r.assemble(r.texts(), false) }

// texts returns what the model has said in each step.
func (r *Responder) texts() []string {
	texts := make([]string, len(r.steps))
	for i, s := range r.steps {
		texts[i] = s.text.String()
	}
	return texts
}

// HeardMessages returns the turn with only those words that were played
// (docs/behaviours.md 32). A cut is marked by an ellipsis.
func (r *Responder) HeardMessages(now time.Time) []providers.Message {
	texts, partial := r.out.Player.Heard(now, len(r.steps))
	if partial {
		for i := len(texts) - 1; i >= 0; i-- {
			if texts[i] != "" {
				texts[i] += "…"
				break
			}
		}
	}
	return r.assemble(texts, false)
}

// assemble puts the user's message, the steps and their results in order. Every
// call gets exactly one result; quotes says whether those are there that quote texts of strangers.
func (r *Responder) assemble(texts []string, quotes bool) []providers.Message {
	var out []providers.Message
	if r.turn.Words != "" {
		out = append(out, providers.Message{Role: providers.RoleUser, Content: r.turn.Words})
	}
	for i, s := range r.steps {
		m := providers.Message{Role: providers.RoleAssistant, Echo: s.echo}
		if i < len(texts) {
			m.Content = strings.TrimSpace(texts[i])
		}
		var results []providers.Message
		for _, c := range s.calls {
			m.ToolCalls = append(m.ToolCalls, c.call)
			result := c.result()
			if c.quotes && !quotes {
				result = message.In(r.turn.Lang, "agent/call-quoted")
			}
			results = append(results, providers.Message{Role: providers.RoleTool, ToolCallID: c.call.ID, Content: result})
		}
		if m.Content == "" && len(m.ToolCalls) == 0 {
			continue
		}
		out = append(append(out, m), results...)
	}
	return out
}

// Answer returns all that the assistant said in messages.
func Answer(messages []providers.Message) (words string) {
	for _, m := range messages {
		if m.Role == providers.RoleAssistant {
			words = text.Join(words, m.Content)
		}
	}
	return words
}

// Asked is a call that a user was asked to allow.
type Asked struct {
	Call   providers.ToolCall
	Tool   string   // what the call would run, by [router.Offer.Identity]
	Action string   // the call, as words
	By     []string // names of the people who may say yes; nil: whoever speaks
}

// question describes what the user is being asked to allow.
type question struct {
	asked   *Asked // nil: nothing
	words   string // said
	allowed bool   // the call that the user has allowed was made
}

// ask asks the user to allow a call, after all else that the turn says.
func (r *Responder) ask(ctx context.Context) error {
	if r.question.asked == nil {
		return nil
	}
	r.question.words = r.o.Prompts.Phrase(prompts.ConsentAsk, r.lang(), "action", r.question.asked.Action)
	return r.Say(ctx, r.question.words)
}

// Asked returns the call that the user was asked to allow, if the messages that were
// heard hold the question. nil: there is none.
func (r *Responder) Asked(heard []providers.Message) *Asked {
	if r.question.asked == nil || !HeardQuestion(Answer(heard), r.question.words) {
		return nil
	}
	return r.question.asked
}

// HeardQuestion reports whether what was heard holds so much of a question that it can
// be answered: some do not wait for its end.
func HeardQuestion(heard, question string) bool {
	if i := strings.IndexAny(question, "?？"); i >= 0 {
		question = question[:i]
	}
	return question != "" && strings.Contains(heard, question)
}
