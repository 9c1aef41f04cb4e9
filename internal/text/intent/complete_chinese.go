package intent

import (
	"strings"
	"unicode/utf8"
)

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

// zhAsksForMore judges the last word: [Unfinished] when something must follow,
// [Undecided] where the same word does end sentences too, [Finished] when it tells
// nothing.
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
