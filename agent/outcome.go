package agent

import (
	"strings"

	"xiaozhi/prompts"
)

// This file is what becomes of calls whose outcome comes after their turn.

// correct sets the one result of a call, now or as soon as its turn is in the
// history.
func (c *Conversation) correct(callID, result string) {
	if !c.dev.history.replaceResult(callID, result) {
		c.early = append(c.early, settled{callID, result})
	}
}

// late records the true outcome of a control call. A failure replaces the
// result in the history and is told at the next pause.
func (c *Conversation) late(l lateCall) {
	e := dispatch(l.response, c.language())
	if !e.failed {
		return
	}
	offer := l.prepared.Offer.Tool
	c.log.Warn("control failed after its success was assumed",
		"tool", offer.Name, "call_id", l.prepared.Call.ID, "result", clip(e.result, 256), "connection_lost", l.gone)
	c.correct(l.prepared.Call.ID, e.result)
	if l.gone {
		return // it may well have been done
	}
	lang := l.prepared.Info.Language
	c.tellNews(notice{language: lang, say: c.o.Prompts.Phrase(prompts.LateFailure, lang,
		"action", actionWords(offer.Name, offer.Description, lang), "reason", spokenReason(e.reason))})
}

// jobOver takes in the outcome of a job: it goes into the history, and is told
// when the floor is free.
func (c *Conversation) jobOver(j jobDone) {
	lang := j.prepared.Info.Language
	offer, e := j.prepared.Offer.Tool, dispatch(j.response, lang)
	c.log.Info("job is over", "tool", offer.Name, "call_id", j.prepared.Call.ID, "failed", e.failed)
	c.correct(j.prepared.Call.ID, e.result)
	action := actionWords(offer.Name, offer.Description, lang)
	n := notice{language: lang}
	switch {
	case e.failed:
		n.say = c.o.Prompts.Phrase(prompts.LateFailure, lang, "action", action, "reason", spokenReason(e.reason))
	case e.say != "":
		n.say = e.say
	default:
		n.say = c.o.Prompts.Phrase(prompts.JobDone, lang, "action", action)
		if isPlain(e.result) {
			n.say = joinText(n.say, e.result)
		}
		n.ask = c.o.Prompts.Phrase(prompts.JobNote, lang, "tool", j.prepared.Offer.LLMName, "result", e.result)
	}
	c.tellNews(n)
}

// maxPlain is how many characters of a result are said as they are.
const maxPlain = 200

// isPlain reports whether a result can be said as it is.
func isPlain(result string) bool {
	return len([]rune(result)) <= maxPlain && !strings.ContainsAny(result, "{}[]<>\n") && languageOf(result) != ""
}

// maxReason is how many characters of a reason are said.
const maxReason = 120

// spokenReason is a tool's own words for its failure, as far as they can be
// said: one line, without the full stop that the phrase has itself.
func spokenReason(reason string) string {
	reason, _, _ = strings.Cut(strings.TrimSpace(reason), "\n")
	if r := []rune(reason); len(r) > maxReason {
		reason = string(r[:maxReason])
	}
	return strings.TrimRight(reason, ".。!！ ")
}
