package agent

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	switch yesOrNo(o.text, asked.action) {
	case yes:
		o.consent = &asked.call
	case no:
		o.reply = c.o.Prompts.Phrase(prompts.ConsentNo, o.language)
	case unclear:
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

// assent is what an answer to a question means.
type assent int

const (
	unclear assent = iota
	yes
	no
)

// Words of an answer to a question. Chinese ones are looked for one after the
// other, so that the longer ones come first; English ones are whole words.
var (
	noSigns = []string{"不", "别", "別", "取消", "算了", "没必要", "沒必要", "停"}
	noWords = []string{"no", "not", "nope", "nah", "never", "dont", "cancel", "stop"}
	yesText = []string{
		"没问题", "沒問題", "没错", "沒錯", "我确定", "我確定", "我同意", "确定", "確定", "确认", "確認", "可以", "同意", "继续", "繼續",
		"当然", "當然", "执行", "執行", "来吧", "來吧", "好", "是", "对", "對", "行", "要", "成",
	}
	yesWords = []string{
		"yes", "yeah", "yep", "yup", "sure", "ok", "okay", "confirm", "confirmed", "absolutely", "certainly", "definitely",
		"right", "correct", "alright", "please", "good", "fine",
	}
	yesPhrases = []string{"do it", "go ahead", "go for it", "of course", "please do", "i do", "all right"}
	// What may stand beside a yes. A sound that says nothing by itself is among
	// them: recognisers hear it in noise.
	sideText  = []string{"嗯", "恩", "啊", "哦", "噢", "呃", "呀", "吧", "的", "啦", "嘛", "哈", "嘞", "帮我", "幫我", "请", "請", "就", "那个", "这个", "那", "去", "快", "做"}
	sideWords = []string{"i", "im", "am", "it", "that", "thats", "is", "now", "um", "uh", "oh", "well", "just", "then", "thanks", "thank", "you", "sounds", "the"}
)

// yesOrNo reads an answer to the question whether to do the action. One that
// holds a no is a no. A yes is nothing but words of assent and of the action
// itself, so that a new request which begins with "OK" is none.
func yesOrNo(text, action string) assent {
	said := strings.Fields(strings.Map(plainLetter, strings.ToLower(action)))
	words := strings.Fields(strings.Map(plainLetter, strings.ToLower(text)))
	signs := strings.ReplaceAll(bare(text), bare(action), "")
	switch {
	case slices.ContainsFunc(noSigns, func(sign string) bool { return strings.Contains(signs, sign) }),
		slices.ContainsFunc(words, func(word string) bool { return slices.Contains(noWords, word) && !slices.Contains(said, word) }):
		return no
	case strings.ContainsAny(text, "?？吗嗎"):
		return unclear
	}
	spaced := " " + strings.Join(words, " ") + " "
	for _, phrase := range yesPhrases {
		spaced = strings.ReplaceAll(spaced, " "+phrase+" ", " yes ")
	}
	found := false
	for word := range strings.FieldsSeq(spaced) {
		switch {
		case slices.Contains(yesWords, word):
			found = true
		case slices.Contains(sideWords, word), slices.Contains(said, word):
		default:
			clear, assents := assentText(word, action)
			if !clear {
				return unclear
			}
			found = found || assents
		}
	}
	if found {
		return yes
	}
	return unclear
}

// plainLetter maps what is neither letter nor digit to a space, apostrophes to nothing.
func plainLetter(r rune) rune {
	switch {
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		return r
	case r == '\'' || r == '’':
		return -1
	}
	return ' '
}

// assentText reports whether a text is nothing but Chinese words of assent, what
// may stand beside them, and signs of the action, and whether assent is among them.
func assentText(text, action string) (clear, assents bool) {
	cut := func(words []string) bool {
		i := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(text, word) })
		if i >= 0 {
			text = text[len(words[i]):]
		}
		return i >= 0
	}
	for text != "" {
		sign, size := utf8.DecodeRuneInString(text)
		switch {
		case cut(yesText):
			assents = true
		case cut(sideText):
		case isCJK(sign) && strings.ContainsRune(action, sign):
			text = text[size:]
		default:
			return false, assents
		}
	}
	return true, assents
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
