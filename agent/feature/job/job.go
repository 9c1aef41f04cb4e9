// Package job keeps the calls that outlast their turn: controls whose success was
// assumed, and jobs, which go on beside the talk. Their outcomes enter the
// history, and are told at the next pause if there is something to tell.
package job

import (
	"context"
	"errors"
	"strings"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// maxPlain is how many characters of a result are said as they are.
const maxPlain = 200

// Feature keeps calls. Its jobs end when the device's record is closed.
type Feature struct{}

// Name is the name of its state.
func (Feature) Name() string { return "job" }

// Attach takes in what has come since the last conversation.
func (Feature) Attach(h feature.Host, state feature.State) feature.Instance {
	mail, ok := state.(*inbox)
	if !ok {
		mail = newInbox()
	}
	c := &calls{Host: h, mail: mail}
	mail.attach(func() { h.Post(c.read) })
	c.read()
	return c
}

// calls are those of one conversation.
type calls struct {
	feature.Host

	mail *inbox
}

func (c *calls) Expects(time.Time) bool { return c.mail.waiting() }

func (c *calls) Detach() feature.State {
	c.mail.attach(nil)
	return c.mail
}

func (c *calls) Late(p router.Prepared, response mcp.ActionResponse) {
	c.mail.put(outcome{prepared: p, response: response, gone: c.Ended()}, nil)
}

func (c *calls) Begin(ctx context.Context, p router.Prepared, lang text.Lang) error {
	if refused := c.mail.start(ctx, p, c.Env().Tools.Detach); refused != "" {
		return errors.New(message.In(lang, refused))
	}
	return nil
}

// read takes in the outcomes that have come.
func (c *calls) read() {
	for _, o := range c.mail.take() {
		if o.job {
			c.jobOver(o)
		} else {
			c.late(o)
		}
	}
}

// late records the true outcome of a control call. A failure replaces the result in
// the history, and is told unless it may well have been done.
func (c *calls) late(o outcome) {
	e := o.response.Outcome(string(c.Lang()))
	if !e.Failed {
		return
	}
	tool, id := o.prepared.Offer.Tool, o.prepared.Call.ID
	c.Env().Log.Warn("control failed after its success was assumed",
		"tool", tool.Name, "call_id", id, "result", text.Cut(e.Text, 256), "connection_lost", o.gone)
	c.SetResult(id, e.Text)
	if !o.gone {
		c.tell(o, c.failure(o, e), "")
	}
}

// jobOver takes in the outcome of a job.
func (c *calls) jobOver(o outcome) {
	lang, tool, id := o.prepared.Info.Language, o.prepared.Offer.Tool, o.prepared.Call.ID
	e, texts := o.response.Outcome(lang), c.Env().Texts
	c.Env().Log.Info("job is over", "tool", tool.Name, "call_id", id, "failed", e.Failed)
	c.SetResult(id, e.Text)
	switch {
	case e.Failed:
		c.tell(o, c.failure(o, e), "")
	case e.Say != "":
		c.tell(o, e.Say, "")
	default:
		words := texts.Phrase(prompts.JobDone, lang, "action", action(o))
		if isPlain(e.Text) {
			words = text.Join(words, e.Text)
		}
		c.tell(o, words, texts.Phrase(prompts.JobNote, lang, "tool", o.prepared.Offer.LLMName, "result", e.Text))
	}
}

// failure returns the words that tell of a call that has failed.
func (c *calls) failure(o outcome, e mcp.Outcome) string {
	return c.Env().Texts.Phrase(prompts.LateFailure, o.prepared.Info.Language, "action", action(o), "reason", think.ReasonWords(e.Reason))
}

// tell announces an outcome.
func (c *calls) tell(o outcome, words, instruction string) {
	lang := text.Lang(o.prepared.Info.Language)
	_, _ = c.Announce(feature.Announcement{Lang: lang, Text: words, Instruction: instruction, Owed: true}) // it logs what it refuses
}

// action returns what a call does, as words.
func action(o outcome) string {
	tool := o.prepared.Offer.Tool
	return think.ActionWords(tool.Name, tool.Description, text.Lang(o.prepared.Info.Language))
}

// isPlain reports whether a result can be said as it is.
func isPlain(result string) bool {
	return len([]rune(result)) <= maxPlain && !strings.ContainsAny(result, "{}[]<>\n") && string(text.Of(result)) != ""
}
