package agent

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"xiaozhi/prompts"
)

// sentence is one piece of a reply on its way to the ear.
type sentence struct {
	display  string // as the model wrote it
	speech   string // cleaned; "" when there is nothing to say
	language string
	emoji    string // the first emoji in it, "" for none
	emotion  string // the face to show: a leading tag like [happy], or what the emoji means; "" for none
	keep     bool   // belongs to the answer; phrases of ours may not
	fallback string // id of the phrase whose embedded sound is played if it cannot be synthesised; "" for none
}

// Patterns of markup that must not be read aloud.
var (
	linkPattern  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)\s]*\)`)
	urlPattern   = regexp.MustCompile(`(?i)\b(?:https?|ftp|wss?)://[^\s，。！？；、“”（）()<>]+|\bwww\.[^\s，。！？；、“”（）()<>]+`)
	tagPattern   = regexp.MustCompile(`</?[A-Za-z][^<>]{0,62}>`)
	fencePattern = regexp.MustCompile("```[A-Za-z0-9_+-]*")
	tablePattern = regexp.MustCompile(`(?m)^[ \t]*\|?(?:[ \t]*:?-{2,}:?[ \t]*\|)+[ \t]*(?::?-{2,}:?)?[ \t]*$`)
	timesPattern = regexp.MustCompile(`([0-9])[ \t]*\*[ \t]*([0-9])`)
	linePattern  = regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|(?:-{3,}|\*{3,}|_{3,})[ \t]*$)`)
	stagePattern = regexp.MustCompile(`^[ \t]*(?:（[^（）。！？]{1,8}）|\*[^*\n]{1,24}\*[ \t]+)`)
	namePattern  = regexp.MustCompile(`^[ \t]*[\[<(]([a-z]{3,12})[\])>]`)
)

// newSentence prepares a segment: what is shown stays whole, what is spoken is
// cleaned of markup, emoji, URLs and stage directions.
func newSentence(text, language string) sentence {
	s := sentence{display: text, language: language, keep: true}
	body := text
	if m := namePattern.FindStringSubmatch(body); m != nil {
		rest := body[len(m[0]):]
		switch {
		case isEmotion(m[1]):
			s.emotion, body = m[1], rest
		case strings.HasSuffix(m[0], "]") && !strings.HasPrefix(rest, "("): // a face that nobody knows, and no link
			s.emotion, body = prompts.Neutral, rest
		}
	}
	body, s.emoji = stripEmoji(body)
	s.speech = speakable(body, language)
	if l := languageOf(s.speech); l != "" {
		s.language = l
	}
	return s
}

// speakable is text as it should be read aloud; "" when nothing is left to say.
func speakable(text, language string) string {
	link, times, comma := " link ", "$1 times $2", ", "
	if language == "zh" {
		link, times, comma = "链接", "${1}乘${2}", "，"
	}
	text = stagePattern.ReplaceAllString(text, "")
	text = fencePattern.ReplaceAllString(text, " ")
	text = linkPattern.ReplaceAllString(text, "$1")
	text = urlPattern.ReplaceAllString(text, link)
	text = tagPattern.ReplaceAllString(text, " ")
	text = tablePattern.ReplaceAllString(text, "")
	text = linePattern.ReplaceAllString(text, "")
	for range 2 { // 2*3*4: the 3 belongs to both
		text = timesPattern.ReplaceAllString(text, times)
	}
	text = strings.NewReplacer("**", "", "__", "", "~~", "", "`", "", "|", " ", "*", "", "\u200b", "", "\ufeff", "").Replace(text)
	if text = oneLine(text, comma); strings.ContainsFunc(text, isWord) {
		return text
	}
	return ""
}

// oneLine makes one line of text, with a comma where a line that has no mark
// ends, so that the items of a list are heard as such.
func oneLine(text, comma string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if b.Len() > 0 {
			if last, _ := utf8.DecodeLastRuneInString(b.String()); isWord(last) {
				b.WriteString(comma)
			} else {
				b.WriteString(" ")
			}
		}
		b.WriteString(strings.Join(words, " "))
	}
	return b.String()
}

// keycap is the mark that puts a figure on a key: 1️⃣ is 1, U+FE0F and this.
const keycap = 0x20e3

// stripEmoji takes the emoji out of text and returns the first of them.
func stripEmoji(text string) (rest, first string) {
	ascii := true
	for i := 0; i < len(text) && ascii; i++ {
		ascii = text[i] < 0x80
	}
	if ascii {
		return text, ""
	}
	var b strings.Builder
	for g := uniseg.NewGraphemes(text); g.Next(); {
		cluster := g.Str()
		if runes := g.Runes(); runes[len(runes)-1] == keycap && isWord(runes[0]) {
			b.WriteRune(runes[0]) // 1️⃣ is a figure, not a face
			continue
		}
		if isEmoji(g.Runes()) {
			if first == "" {
				first = cluster
			}
			continue
		}
		b.WriteString(cluster)
	}
	return b.String(), first
}

// isEmoji reports whether a grapheme cluster is shown as a picture.
func isEmoji(runes []rune) bool {
	r := runes[0]
	switch {
	case r >= 0x1f300 && r <= 0x1faff, r >= 0x1f1e6 && r <= 0x1f1ff, r >= 0x2600 && r <= 0x27bf, r >= 0x2b00 && r <= 0x2bff, r == 0x231a, r == 0x231b, r == 0x23f0, r == 0x23f3:
		return true
	}
	for _, v := range runes[1:] {
		if v == 0xfe0f || v == keycap {
			return !unicode.IsLetter(r)
		}
	}
	return false
}
