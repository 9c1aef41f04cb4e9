package spoken

import (
	"cmp"
	"slices"
	"strings"
)

// Move is a change of a level, in hundredths.
type Move struct {
	up bool
	By int // 0: a step of the usual size
	to int // -1: relative; else the level itself

	halve bool // to half of what it is now
}

// usualStep is how far "louder" goes.
const usualStep = 10

// From returns the level that the move leads to from now.
func (m Move) From(now int) int {
	by := cmp.Or(m.By, usualStep)
	switch {
	case m.to >= 0:
		return m.to
	case m.halve:
		return now / 2
	case m.up:
		return now + by
	default:
		return now - by
	}
}

// Relative reports whether the present level matters.
func (m Move) Relative() bool { return m.to < 0 }

// ParseMove understands up, down, max, min, half, and what people say: louder,
// a bit quieter, 大一点, 太亮了, 调到最大, 小20. It is false for other words.
func ParseMove(text string) (Move, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, noun := range []string{"brightness", "loudness", "亮度", "响度", "强度", "高度", "音响", "小智", " - "} {
		text = strings.ReplaceAll(text, noun, " ") // it says no direction
	}
	m := Move{to: -1}
	if to, ok := namedLevel(text); ok {
		m.to = to
		return m, true
	}
	switch {
	case containsAny(text, "unmute", "取消静音", "解除静音", "关闭静音"):
		m.up, m.By = true, 3*usualStep
		return m, true
	case containsAny(text, "max", "full", "loudest", "brightest", "highest", "最大", "最高", "最响", "最亮"):
		m.to = 100
		return m, true
	case containsAny(text, "min", "mute", "silen", "quietest", "dimmest", "lowest", "最小", "最低", "最轻", "最暗", "静音"):
		m.to = 0
		return m, true
	case containsAny(text, "减半", "小一半", "低一半", "暗一半", "轻一半", "half as", "by half", "in half"):
		m.halve = true
		return m, true
	case containsAny(text, "half", "一半"):
		m.to = 50
		return m, true
	}
	up := lastWord(text, "up", "loud", "bright", "high", "rais", "increas", "strong", "+", "大", "高", "响", "亮", "强", "增", "加", "升")
	down := lastWord(text, "down", "quiet", "soft", "dim", "dark", "less", "low", "decreas", "reduc", "weak", "-", "小", "低", "轻", "暗", "弱", "减", "降")
	over := lastWord(text, "too ", "so ", "太", "过", "别", "不要")
	switch {
	case containsAny(text, "less", "吵", "刺眼", "noisy"):
		m.up = false
	case containsAny(text, "听不见", "听不清", "看不清", "看不见", "hear", "cannot see", "can't see"):
		m.up = true
	case up < 0 && down < 0 && strings.Contains(text, "more"):
		m.up = true
	case up < 0 && down < 0:
		return Move{}, false
	case up >= 0 && down >= 0:
		m.up = up > down // "too loud, turn it down": the last word counts
	default:
		m.up = (up >= 0) != (over >= 0) // too loud means down
	}
	m.By = stepOf(text)
	return m, true
}

// stepOf returns the size of a step: a number, a lot, or 0 for the usual.
func stepOf(text string) int {
	plain := strings.NewReplacer("一点", "", "一些", "", "一下", "", "一个", "", "百分之", "").Replace(text)
	if n, ok := FirstNumber(plain); ok && n > 0 {
		return min(n, 100)
	}
	for word := range strings.FieldsSeq(plain) {
		if n, ok := Number(word); ok && n > 1 { // a and one are said without meaning 1
			return min(n, 100)
		}
	}
	if containsAny(text, "a lot", "much", "很多", "得多", "许多", "大幅") {
		return 3 * usualStep
	}
	return 0
}

// namedLevel is the level that is named itself: up to 80, 调大到八十, set it to 30.
func namedLevel(text string) (int, bool) {
	for _, before := range []string{"调到", "调成", "调为", "设为", "设成", "到", " to "} {
		_, after, ok := strings.Cut(text, before)
		if !ok {
			continue
		}
		after = strings.TrimPrefix(strings.TrimSpace(after), "百分之")
		if word, _, _ := strings.Cut(strings.TrimRight(after, ".。% "), " "); word != "" {
			if n, ok := Number(strings.TrimRight(word, "%,，")); ok && n <= 100 {
				return n, true
			}
		}
	}
	return 0, false
}

// lastWord returns the index at which the last of the words begins in text, -1 for none.
func lastWord(text string, words ...string) int {
	last := -1
	for _, w := range words {
		last = max(last, strings.LastIndex(text, w))
	}
	return last
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
