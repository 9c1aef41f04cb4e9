package agent

import (
	"strings"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// This file is what becomes of calls whose outcome comes after their turn.

// late records the true outcome of a control call. A failure replaces the
// result in the history and is told at the next pause.
func (c *Conversation) late(l lateCall) {
	e := l.response.Outcome(c.language())
	if !e.Failed {
		return
	}
	offer := l.prepared.Offer.Tool
	c.log.Warn("control failed after its success was assumed",
		"tool", offer.Name, "call_id", l.prepared.Call.ID, "result", text.Cut(e.Text, 256), "connection_lost", l.gone)
	c.dev.history.SetResult(l.prepared.Call.ID, e.Text)
	if l.gone {
		return // it may well have been done
	}
	lang := l.prepared.Info.Language
	c.tellOutcome(feature.Announcement{Lang: text.Lang(lang), Text: c.o.Prompts.Phrase(prompts.LateFailure, lang,
		"action", think.ActionWords(offer.Name, offer.Description, text.Lang(lang)), "reason", think.ReasonWords(e.Reason))})
}

// jobOver takes in the outcome of a job: it goes into the history, and is told
// when the floor is free.
func (c *Conversation) jobOver(j jobDone) {
	lang := j.prepared.Info.Language
	offer, e := j.prepared.Offer.Tool, j.response.Outcome(lang)
	c.log.Info("job is over", "tool", offer.Name, "call_id", j.prepared.Call.ID, "failed", e.Failed)
	c.dev.history.SetResult(j.prepared.Call.ID, e.Text)
	action := think.ActionWords(offer.Name, offer.Description, text.Lang(lang))
	n := feature.Announcement{Lang: text.Lang(lang)}
	switch {
	case e.Failed:
		n.Text = c.o.Prompts.Phrase(prompts.LateFailure, lang, "action", action, "reason", think.ReasonWords(e.Reason))
	case e.Say != "":
		n.Text = e.Say
	default:
		n.Text = c.o.Prompts.Phrase(prompts.JobDone, lang, "action", action)
		if isPlain(e.Text) {
			n.Text = text.Join(n.Text, e.Text)
		}
		n.Instruction = c.o.Prompts.Phrase(prompts.JobNote, lang, "tool", j.prepared.Offer.LLMName, "result", e.Text)
	}
	c.tellOutcome(n)
}

// tellOutcome queues the outcome of a call, which can wait nowhere else.
func (c *Conversation) tellOutcome(n feature.Announcement) {
	n.Owed = true
	_, _ = host{c}.Announce(n) // Announce has logged it
}

// maxPlain is how many characters of a result are said as they are.
const maxPlain = 200

// isPlain reports whether a result can be said as it is.
func isPlain(result string) bool {
	return len([]rune(result)) <= maxPlain && !strings.ContainsAny(result, "{}[]<>\n") && string(text.Of(result)) != ""
}
