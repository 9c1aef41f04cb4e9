// Package intent judges what a user means by the words that a recogniser heard, Chinese and
// English: whether more will follow, whether words said over a reply interrupt it, whether they
// are the reply's own echo, and whether an answer is a yes. All functions are pure.
package intent

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

// Completeness says whether what was said so far sounds complete.
type Completeness int

// The degrees of completeness.
const (
	Undecided  Completeness = iota // nothing in the words tells
	Finished                       // a whole command, question or answer
	Unfinished                     // more must follow
)

// String returns "yes", "no" or "maybe".
func (f Completeness) String() string { return [...]string{"maybe", "yes", "no"}[f] }

// Complete judges by the last words of a transcript whether the user has said all of it; a mark
// at the end counts where there is one. The language is that of the transcript, or "".
//
// A wrong [Unfinished] costs the user another commit delay, a wrong [Finished] only the pause
// that was learned. So Unfinished is for endings that hardly ever end a sentence ("and", 如果,
// 帮我), which are [Undecided] where they do ("what is it for", 我就是). Nouns, names and figures
// are Undecided: after 打开客厅 or "twenty" anything may follow.
func Complete(words string, lang text.Lang) Completeness {
	return complete(words, func(said string) Completeness { return completeWords(said, lang) })
}

// complete judges by the marks at the end of words, and by what judge makes of the words before them.
func complete(words string, judge func(said string) Completeness) Completeness {
	words = strings.TrimSpace(words)
	said := strings.TrimRightFunc(words, func(r rune) bool { return !text.IsWord(r) })
	marks := words[len(said):]
	if said == "" {
		return Undecided
	}
	f := judge(said)
	switch {
	case strings.Contains(marks, "…"), strings.Contains(marks, ".."), strings.Contains(marks, "。。"):
		return Unfinished
	case strings.ContainsAny(marks, "?？!！"):
		return Finished
	case strings.ContainsAny(marks, "。.．"):
		// Recognisers that punctuate close whatever they were given with a full
		// stop, so after an unfinished ending it only raises a doubt.
		if f == Unfinished {
			return Undecided
		}
		return Finished
	case strings.ContainsAny(marks, ",，、:：;；—–-"):
		return Unfinished
	}
	return f
}

// completeWords judges a text that ends with a letter or a figure.
func completeWords(said string, lang text.Lang) Completeness {
	signs := []rune(said)
	last := signs[len(signs)-1]
	switch {
	case unicode.IsDigit(last):
		return Undecided // a telephone number may go on, and so may 26
	case text.IsCJK(last):
		return completeChinese(text.Bare(strings.Map(simplified, said)))
	case lang.IsChinese() && text.Of(said) == text.Chinese:
		return Undecided // a name within Chinese words: 打开 wifi
	}
	return completeEnglish(strings.Fields(strings.Map(plainLetter, strings.ToLower(said))))
}

// simplified maps a traditional sign of the words that are looked for to the
// simplified one, and any other sign to itself.
func simplified(r rune) rune {
	if to, ok := signs()[r]; ok {
		return to
	}
	return r
}

// oneOf reports whether s is one of the words, which are separated by spaces.
func oneOf(s, words string) bool {
	if s == "" {
		return false
	}
	for word := range strings.FieldsSeq(words) {
		if s == word {
			return true
		}
	}
	return false
}

// endsWith reports whether s ends with one of the words, and returns the part of s
// before the longest of them.
func endsWith(s, words string) (before string, ok bool) {
	return cutLongest(s, words, strings.CutSuffix)
}

// beginsWith reports whether s begins with one of the words, and returns the part
// of s after the longest of them.
func beginsWith(s, words string) (after string, ok bool) {
	return cutLongest(s, words, strings.CutPrefix)
}

func cutLongest(s, words string, cut func(s, word string) (string, bool)) (rest string, ok bool) {
	rest = s
	for word := range strings.FieldsSeq(words) {
		if r, is := cut(s, word); is && len(r) < len(rest) {
			rest, ok = r, true
		}
	}
	return rest, ok
}

// completeChinese judges a Chinese text without marks and spaces, in simplified
// signs: whole texts first, then what asks for more, then what closes.
func completeChinese(said string) Completeness {
	if oneOf(said, zh().Whole) {
		return Finished
	}
	rest, opening := withoutOpening(said)
	short := utf8.RuneCountInString(rest) == 1 && rest != "停"
	switch {
	case oneOf(said, zh().Unclear), rest == "" && oneOf(opening, zh().Answers):
		return Undecided
	case rest == "":
		return Unfinished // nothing but the beginning of a request: 请你帮我
	case oneOf(rest, zh().Verbs):
		if short && opening == "" {
			return Undecided // an answer: 想
		}
		return Unfinished
	case oneOf(rest, zh().Whole) && !short:
		return Finished
	case zhLacksVerb(rest):
		return Unfinished
	}
	if f := zhAsksForMore(said); f != Finished {
		return f
	}
	return zhCloses(said, rest)
}

// withoutOpening takes the opening words away and returns the last of them too.
func withoutOpening(said string) (rest, opening string) {
	for {
		rest, ok := beginsWith(said, zh().Opening)
		if !ok {
			return said, opening
		}
		said, opening = rest, strings.TrimSuffix(said, rest)
	}
}

// zhLacksVerb reports whether the text says "take the lamp" (把灯) and not yet
// what to do with it: what follows is a thing and no verb.
func zhLacksVerb(rest string) bool {
	held, ok := beginsWith(rest, "把 将")
	if !ok {
		return false
	}
	for noun := range strings.FieldsSeq(zh().Nouns) {
		held = strings.ReplaceAll(held, noun, "")
	}
	return utf8.RuneCountInString(held) <= 8 && !strings.ContainsAny(held, "开关调设改换放停拿打删取加减切播移送给成到掉上下高低大小说读念写翻存录收"+
		"擦洗倒修带拉推挂吃喝用做算卖买寄发记忘弄搞摆点拍卷搬扔丢清除锁完好起来去了吧")
}

// zhAsksForMore judges the last word: [Unfinished] when something must follow, [Undecided] where
// the same word does end sentences too, [Finished] when it tells nothing.
func zhAsksForMore(said string) Completeness {
	before, ok := endsWith(said, zh().More)
	if !ok {
		return Finished
	}
	if _, ends := endsWith(before, zh().EndsAfter[said[len(before):]]); ends {
		return Undecided
	}
	return Unfinished
}

// zhCloses judges a text whose last word asks for nothing: particles, question
// words and commands that have their object close a sentence.
func zhCloses(said, rest string) Completeness {
	if before, ok := endsWith(said, zh().Particles); ok {
		particle := strings.TrimPrefix(said, before)
		if oneOf(before, "其实 首先 就是 那个 这个 第一 嗯 呃") || (!strings.Contains("吗呢", particle) && zhAsksForMore(before) != Finished) {
			return Undecided // 就是呢, 因为啊: drawn out, not over
		}
		return Finished
	}
	if before, ok := strings.CutSuffix(said, "了"); ok {
		if _, open := endsWith(before, "到 对 有 去 买"); open {
			return Undecided // 我去了 and then where
		}
		return Finished
	}
	if zhAsks(said) || zhCommands(said, rest) {
		return Finished
	}
	return Undecided
}

// zhAsks reports whether the text ends as a question does.
func zhAsks(said string) bool {
	if before, ok := endsWith(said, "什么时候"); ok {
		_, is := endsWith(before, "是 在")
		return is
	}
	if before, ok := endsWith(said, "什么 多少"); ok {
		return !strings.HasSuffix(before, "有")
	}
	if _, ok := endsWith(said, "几点"); ok {
		return strings.Contains(said, "现在") || strings.HasSuffix(said, "到几点") || strings.HasSuffix(said, "是几点")
	}
	_, ok := endsWith(said, zh().Questions)
	return ok
}

// zhCommands reports whether the text is a command that has its object.
func zhCommands(said, rest string) bool {
	if _, ok := endsWith(said, zh().Settings); ok {
		return said != "打开" && rest != "打开" && rest != "关闭"
	}
	object, ok := beginsWith(rest, zh().Commands)
	if !ok || object == "" {
		return false
	}
	_, ok = endsWith(object, zh().Nouns)
	return ok
}
