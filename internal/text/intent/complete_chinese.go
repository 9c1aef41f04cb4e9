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
	if _, ends := endsWith(before, zhEndsAfter(said[len(before):])); ends {
		return Undecided
	}
	return Unfinished
}

// zhEndsAfter returns the signs before a word of zh().More with which it ends a
// sentence: 暖和, 我就要这个, 他得了第一, 他不给.
func zhEndsAfter(word string) string {
	switch word {
	case "和":
		return "暖 温 饱 柔 缓 平 总 随 亲 调"
	case "跟":
		return "高 脚 后"
	case "与":
		return "参 赠 给"
	case "从":
		return "服 听 顺 随 盲 遵"
	case "被":
		return "棉 盖 叠 羽绒"
	case "让":
		return "不 谦 退 转 礼 忍 肯"
	case "给":
		return "不 就 要 肯 该"
	case "那个", "这个":
		return "要 是 听 选 看 买 吃 喝 用 找 换 欢 掉 除 停"
	case "就是":
		return "我 他 她 它 本来"
	case "嗯", "额":
		return "名 金 余"
	case "第一", "第二", "第三":
		return "得 得了 拿 拿了 考 考了 排 排名 全班 世界 安全 天下 是 友谊"
	case "帮我":
		return "帮 来 谁 要 不"
	case "我要":
		return "是 不是"
	case "将":
		return "麻 打麻 上 大 武"
	case "怎么":
		return "不 没"
	case "我认为", "我以为", "我觉得":
		return "是"
	case "送给", "交给", "发给":
		return "不"
	case "或":
		return "或"
	}
	return ""
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
	switch {
	case zhAsks(said), zhCommands(said, rest):
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
