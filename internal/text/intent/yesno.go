package intent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

// Answer says what an answer to a question means.
type Answer int

const (
	Unclear Answer = iota // neither, or a new request
	Yes
	No
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

// YesNo reads an answer to the question whether to do the action. An answer
// that holds a no is [No]. It is [Yes] if it holds nothing but words of assent
// and of the action itself, so that a new request that begins with "OK" is not.
func YesNo(words, action string) Answer {
	said := strings.Fields(strings.Map(plainLetter, strings.ToLower(action)))
	heard := strings.Fields(strings.Map(plainLetter, strings.ToLower(words)))
	signs := strings.ReplaceAll(text.Bare(words), text.Bare(action), "")
	switch {
	case slices.ContainsFunc(noSigns, func(sign string) bool { return strings.Contains(signs, sign) }),
		slices.ContainsFunc(heard, func(word string) bool { return slices.Contains(noWords, word) && !slices.Contains(said, word) }):
		return No
	case strings.ContainsAny(words, "?？吗嗎"):
		return Unclear
	}
	spaced := " " + strings.Join(heard, " ") + " "
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
				return Unclear
			}
			found = found || assents
		}
	}
	if found {
		return Yes
	}
	return Unclear
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
func assentText(said, action string) (clear, assents bool) {
	cut := func(words []string) bool {
		i := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(said, word) })
		if i >= 0 {
			said = said[len(words[i]):]
		}
		return i >= 0
	}
	for said != "" {
		sign, size := utf8.DecodeRuneInString(said)
		switch {
		case cut(yesText):
			assents = true
		case cut(sideText):
		case text.IsCJK(sign) && strings.ContainsRune(action, sign):
			said = said[size:]
		default:
			return false, assents
		}
	}
	return true, assents
}
