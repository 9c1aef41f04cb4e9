package agent

import (
	"strings"
	"time"

	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// consentTime is how long a yes counts after the question.
const consentTime = time.Minute

// consent is what the user was asked to allow.
type consent struct {
	call  providers.ToolCall
	until time.Time
}

// consentTo makes an order of the user's answer, if a question is open and text
// answers it. Whatever else is said closes the question: nothing is done.
func (c *Conversation) consentTo(text, lang string, tm *timing) (order, bool) {
	asked := c.asked
	c.asked = nil
	if asked == nil || time.Now().After(asked.until) {
		return order{}, false
	}
	o := order{text: text, stt: text, language: lang, timing: tm}
	switch yesOrNo(text) {
	case yes:
		o.consent = &asked.call
		return o, true
	case no:
		o.reply = c.o.Prompts.Phrase(prompts.ConsentNo, lang)
		return o, true
	case unclear:
	}
	return order{}, false
}

// assent is what an answer to a question means.
type assent int

const (
	unclear assent = iota
	yes
	no
)

// yesOrNo reads a short answer. One that holds a no is a no.
func yesOrNo(text string) assent {
	b := bare(text)
	if n := len([]rune(b)); n == 0 || n > 24 {
		return unclear
	}
	for _, word := range []string{"不", "别", "取消", "算了", "没必要", "dont", "donot", "cancel", "never", "stop"} {
		if strings.Contains(b, word) {
			return no
		}
	}
	if isOneOf(text, []string{"no", "nope", "no thanks", "no thank you", "nah"}) || strings.HasPrefix(b, "no") && strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "no ") {
		return no
	}
	for _, word := range []string{"确定", "确认", "可以", "好的", "同意", "执行吧", "继续", "没问题", "没错", "当然"} {
		if strings.HasPrefix(b, word) {
			return yes
		}
	}
	if isOneOf(text, []string{"是", "是的", "对", "对的", "好", "好啊", "好吧", "行", "行吧", "嗯", "嗯嗯", "要", "来吧"}) {
		return yes
	}
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(text, " ")), " ")
	switch bare(first) {
	case "yes", "yeah", "yep", "sure", "ok", "okay", "confirm", "absolutely", "certainly":
		return yes
	}
	if isOneOf(text, []string{"do it", "go ahead", "please do", "of course", "yes please", "please", "right", "correct", "all right", "alright"}) {
		return yes
	}
	return unclear
}

// ask is the effect of a call that the user has to allow first.
func (t *turn) ask(action string) effect {
	return effect{
		result: handledText(t.order.language, "还没有执行：正在请用户确认。", "not done yet: the user is being asked to confirm."),
		say:    t.o.Prompts.Phrase(prompts.ConsentAsk, t.order.language, "action", action),
		asks:   true,
	}
}
