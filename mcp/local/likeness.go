package local

import "strings"

// minLikeness is how like its name a song must be to be the one that was meant.
const minLikeness = 0.45

// likeness says how well a song fits what was asked for, 0 to 1: the title as it
// is, then part of it or of its folder, then all words somewhere in it, then
// most of it.
func likeness(wanted string, s Song) float64 {
	title := foldTitle(s.Title)
	tight, tightTitle, tightText := squeeze(wanted), squeeze(title), squeeze(s.text)
	switch {
	case tight == tightTitle:
		return 1
	case strings.Contains(tightTitle, tight):
		return 0.95
	case strings.Contains(tightText, tight):
		return 0.9
	case len([]rune(tightTitle)) >= 2 && strings.Contains(tight, tightTitle):
		return 0.85 // 周杰伦的青花瓷
	case hasWords(s.text, strings.Fields(wanted)):
		return 0.8
	}
	return 0.75 * max(pairs(tight, tightTitle), pairs(tight, tightText))
}

func squeeze(text string) string { return strings.ReplaceAll(text, " ", "") }

func hasWords(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return len(words) > 0
}

// pairs counts wanted's pairs of neighbouring letters that are in name, so
// that a letter wrong or missing costs little. A short name must also have
// little else, for its few pairs are soon found.
func pairs(wanted, name string) float64 {
	x, y := []rune(wanted), []rune(name)
	if len(x) < 2 || len(y) < 2 {
		return 0
	}
	count := make(map[[2]rune]int, len(y))
	for i := range len(y) - 1 {
		count[[2]rune{y[i], y[i+1]}]++
	}
	shared := 0.0
	for i := range len(x) - 1 {
		if p := [2]rune{x[i], x[i+1]}; count[p] > 0 {
			count[p]--
			shared++
		}
	}
	if len(x) < 4 {
		return 2 * shared / float64(len(x)+len(y)-2)
	}
	return shared / float64(len(x)-1)
}
