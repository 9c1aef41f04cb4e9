package agent

import (
	"errors"
	"time"
	core "xiaozhi/agent/turn"

	"xiaozhi/prompts"
)

// This file makes an order of what was said.

// understood makes an order of all that was said.
func (c *Conversation) understood() order {
	last := c.heard[len(c.heard)-1]
	tm := &timing{endOfSpeech: last.spoken, endpoint: last.ended, silent: c.silentFrom(last), transcript: last.textAt, discarded: c.discarded}
	var text string
	var failed error
	rejected := false
	for _, u := range c.heard {
		switch {
		case u.err != nil:
			failed = errors.Join(failed, u.err)
		case u.text.Rejected:
			rejected = true
			c.log.Info("transcript rejected", "provider", u.text.Provider, "chars", len([]rune(u.text.Text)))
			c.log.Debug("rejected guess", "guess", clip(u.text.Text, 128))
		default:
			text = joinText(text, u.text.Text)
			tm.asr = u.text.Provider
		}
	}
	switch {
	case bare(text) != "":
		c.empties = 0
		return c.answer(text, tm)
	case failed != nil:
		return order{phrase: prompts.FailASR, failed: failed, language: c.language(), timing: tm}
	case rejected && c.o.NoChinese && c.hint():
		c.log.Warn("speech is not English, and no Chinese recogniser is configured",
			"hint", "add a Chinese-capable section to asr in the config")
		return order{phrase: prompts.NoChineseASR, language: c.deviceLanguage(), cause: ErrNoSpeech, timing: tm}
	}
	return c.empty(tm)
}

// deviceLanguage is the language of the device, whatever was said last.
func (c *Conversation) deviceLanguage() string {
	if c.session.Language != "" {
		return c.session.Language
	}
	return c.language()
}

// answer is the order to answer text.
func (c *Conversation) answer(text string, tm *timing) order {
	lang := languageOf(text)
	if lang == "" {
		lang = c.language()
	}
	before := c.dev.language
	c.dev.language = lang
	if c.answers(text) {
		return order{text: text, stt: text, told: true, language: lang, before: before, timing: tm}
	}
	o := c.consented(order{text: text, stt: text, language: lang, before: before, timing: tm})
	if o.consent == nil && o.reply == "" && c.dev.song != nil && isOneOf(text, c.o.StopWords) {
		c.did(core.EndMusic{})
		c.dev.endSong()
		o.reply = c.o.Prompts.Phrase(prompts.OK, lang)
	}
	return o
}

// unsay takes back what an order that is undone has changed: the language of
// the device, and the question that it answered.
func (c *Conversation) unsay(o order) {
	if o.text != "" {
		c.dev.language = o.before
	}
	c.askAgain(o)
}

// empty is the order for an utterance without words: "pardon?" at first, a
// hint at the second in a row, then nothing but the start/stop pair.
func (c *Conversation) empty(tm *timing) order {
	c.empties++
	o := order{language: c.language(), cause: ErrNoSpeech, timing: tm}
	switch {
	case c.empties == 1:
		o.phrase = prompts.Pardon
	case c.empties == 2 && c.hint():
		o.phrase = prompts.HintNoSpeech
	}
	return o
}

// hint reports whether a hint about recognition may be spoken now.
func (c *Conversation) hint() bool {
	now := time.Now()
	if !c.dev.hinted.IsZero() && now.Sub(c.dev.hinted) < hintInterval {
		return false
	}
	c.dev.hinted = now
	return true
}
