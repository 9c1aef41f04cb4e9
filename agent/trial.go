package agent

import (
	"slices"
	"time"
	core "xiaozhi/agent/turn"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
	"xiaozhi/providers"
)

// This file is speculation (voice.md 2.3): at each pause that may be the end of
// what the user says, a turn begins on trial. Its floor lets nothing through
// and its tools wait, so it can be undone without a trace. If the utterance
// ends there, the turn is the answer, and most of its work is done.

// How the answer to an utterance came about, for the turn's log line.
const (
	speculationNone = "none"
	speculationUsed = "used"
)

// drafted takes in the text of an utterance that may be over.
func (c *Conversation) drafted(u *utterance) {
	if u.stretch != c.stretch || c.state != Listening {
		return
	}
	said, ok := c.draft(u)
	if ok || bare(said) != "" {
		c.tellEars(earsAwait{u, c.dev.pause.delay(c.commitAfter(), intent.Complete(said, text.Lang(c.textLanguage(said))))})
	}
	if !ok || c.busy() || c.greeting != "" || c.hungUp || c.trials >= c.o.Drafts {
		return
	}
	c.trials++
	lang := c.textLanguage(said)
	c.begin(order{
		text: said, stt: said, language: lang, trial: true,
		timing: &timing{asr: u.text.Provider},
	})
}

// draft is all that was said so far, and whether it can be answered on trial:
// whatever has an effect beside the answer waits for the end.
func (c *Conversation) draft(u *utterance) (text string, ok bool) {
	ok = true
	for _, said := range append(slices.Clip(c.heard), u) {
		if !said.final || said.err != nil || said.text.Rejected {
			ok = false
			continue
		}
		text = joinText(text, said.text.Text)
	}
	return text, ok && bare(text) != "" && c.asked == nil && !c.awaited() && c.dev.song == nil
}

// textLanguage is the language of a turn that answers text.
func (c *Conversation) textLanguage(text string) string {
	if lang := languageOf(text); lang != "" {
		return lang
	}
	return c.language()
}

// commitAfter is the configured silence that ends an utterance.
func (c *Conversation) commitAfter() time.Duration { return c.o.Endpoint.WithDefaults().Commit }

// onTrial reports whether the turn that runs, or waits to begin, is on trial.
func (c *Conversation) onTrial() bool {
	if c.pending != nil {
		return c.pending.trial
	}
	return c.turn != nil && !c.turnDone && c.live && c.turn.order.trial && !c.adopted
}

// endTrial undoes a turn on trial.
func (c *Conversation) endTrial(cause error) {
	if c.onTrial() {
		c.discarded++
		c.takeAway(cause)
	}
}

// adopt makes a turn on trial the answer to what o asks for, and reports
// whether it is: the words and all that the model was told must be the same.
func (c *Conversation) adopt(o order) bool {
	if !c.onTrial() {
		return false
	}
	plain := o.phrase == "" && o.reply == "" && o.consent == nil && o.asked == nil && !o.told
	switch {
	case !plain, c.pending != nil && c.pending.text != o.text,
		c.pending == nil && (c.turn.order.text != o.text || c.turn.version != c.dev.history.version):
		c.endTrial(ErrReplaced)
		return false
	case c.pending != nil: // it has not begun
		c.discarded++
		c.pending = nil
		return false
	}
	c.adopted = true
	c.turn.timing.commit(o.timing)
	c.turn.undo = o
	c.did(core.Adopt{Turn: c.turn.id, Request: o.request()})
	c.did(core.Commit{Turn: c.turn.id})
	if c.turn.floor.grant() {
		c.speaking(c.turn)
	}
	return true
}

// commit takes over the times of the utterance that a turn on trial answers
// after all.
func (t *timing) commit(from *timing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endOfSpeech, t.endpoint, t.silent, t.transcript = from.endOfSpeech, from.endpoint, from.silent, from.transcript
	t.asr = from.asr
	t.speculation, t.discarded = speculationUsed, from.discarded
}

// resumed takes in that the user goes on after a pause.
func (c *Conversation) resumed(h heardResume) {
	c.touch()
	u := h.u
	if h.n != u.hearing {
		u.hearing, u.final, u.text, u.err = h.n, false, providers.Transcript{}, nil
	}
	if u.stretch != c.stretch {
		return
	}
	c.overlapResumed(u)
	if c.state == Listening {
		c.dev.pause.paused(h.pause) // over a reply it may be anything, also the reply itself
		c.endTrial(ErrResumed)
	}
}
