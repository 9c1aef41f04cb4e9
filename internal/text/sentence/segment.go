package sentence

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// Segment is one piece of a reply: what is shown and what is spoken.
type Segment struct {
	Display  string    // as the model wrote it
	Speech   string    // cleaned; "" when there is nothing to say
	Language text.Lang // of the speech; that of the turn if the speech tells none
	Emoji    string    // the first emoji in it, "" for none
	Emotion  string    // the face that a leading tag like [happy] names, "" for none
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

// signs of markup that are left when the patterns are done.
var signs = strings.NewReplacer("**", "", "__", "", "~~", "", "`", "", "|", " ", "*", "", "\u200b", "", "\ufeff", "")

// New prepares a segment of a turn in language lang. What is shown stays whole;
// what is spoken is cleaned of markup, emoji, URLs and stage directions.
func New(words string, lang text.Lang) Segment {
	s := Segment{Display: words, Language: lang}
	body := words
	if m := namePattern.FindStringSubmatch(body); m != nil {
		rest := body[len(m[0]):]
		switch {
		case slices.Contains(prompts.Emotions(), m[1]):
			s.Emotion, body = m[1], rest
		case strings.HasSuffix(m[0], "]") && !strings.HasPrefix(rest, "("): // an unknown face, and not a link
			s.Emotion, body = prompts.Neutral, rest
		}
	}
	body, s.Emoji = stripEmoji(body)
	s.Speech = Speakable(body, lang)
	if text.Of(s.Speech) != "" {
		s.Language = text.Resolve(s.Speech, "", lang)
	}
	return s
}

// Face sets the emotion after the emoji, or the emoji after the emotion, so
// that both name one face that devices know. A segment with neither keeps none.
func (s *Segment) Face() {
	switch {
	case s.Emotion != "":
		s.Emoji = prompts.EmojiOf(s.Emotion)
	case s.Emoji != "":
		name, ok := prompts.EmotionOf(s.Emoji)
		if !ok {
			name = prompts.Neutral
		}
		s.Emotion = name
	}
}

// Speakable returns words as they are read aloud in language lang, or "" if nothing is left to say.
func Speakable(words string, lang text.Lang) string {
	link, times, comma := " link ", "$1 times $2", ", "
	switch {
	case lang.IsChinese():
		link, times, comma = "链接", "${1}乘${2}", "，"
	case !lang.IsOwn():
		link, times = " ", "$1 × $2"
		if lang.Base() == "ja" {
			comma = "、"
		}
	}
	if marked(words) {
		words = unmark(words, link, times)
	}
	if words = oneLine(words, comma); strings.ContainsFunc(words, text.IsWord) {
		return words
	}
	return ""
}

// marked reports whether words may hold what [unmark] changes. Most sentences hold nothing
// of it: looking first halves the cost of a plain one, from 10 to 5 µs (BenchmarkNew).
func marked(words string) bool {
	return strings.ContainsAny(words, "[<>`|*#-+_~:（\u200b\ufeff") || strings.Contains(strings.ToLower(words), "www.")
}

// unmark takes markup, addresses and stage directions out of words. Of an address is left
// what link says, and times is how a product of two numbers is read.
func unmark(words, link, times string) string {
	words = stagePattern.ReplaceAllString(words, "")
	words = fencePattern.ReplaceAllString(words, " ")
	words = linkPattern.ReplaceAllString(words, "$1")
	words = urlPattern.ReplaceAllString(words, link)
	words = tagPattern.ReplaceAllString(words, " ")
	words = tablePattern.ReplaceAllString(words, "")
	words = linePattern.ReplaceAllString(words, "")
	for range 2 { // 2*3*4: the 3 belongs to both
		words = timesPattern.ReplaceAllString(words, times)
	}
	return signs.Replace(words)
}

// oneLine joins the lines of a text, with a comma where a line ends without a
// mark, so that the items of a list are heard as such.
func oneLine(lines, comma string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if b.Len() > 0 {
			if last, _ := utf8.DecodeLastRuneInString(b.String()); text.IsWord(last) {
				b.WriteString(comma)
			} else {
				b.WriteString(" ")
			}
		}
		b.WriteString(strings.Join(words, " "))
	}
	return b.String()
}

// The marks that make a picture of the character before them: 1️⃣ is 1, variation and keycap.
const (
	variation = 0xfe0f
	keycap    = 0x20e3
)

// stripEmoji takes the emoji out of words and returns the first of them.
func stripEmoji(words string) (rest, first string) {
	if !strings.ContainsFunc(words, func(r rune) bool { return isPicture(r) || r == variation || r == keycap }) {
		return words, "" // most words, which need not be cut into what is seen as one character
	}
	var b strings.Builder
	for g := uniseg.NewGraphemes(words); g.Next(); {
		cluster := g.Str()
		if runes := g.Runes(); runes[len(runes)-1] == keycap && text.IsWord(runes[0]) {
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
	if isPicture(runes[0]) {
		return true
	}
	if slices.ContainsFunc(runes[1:], func(v rune) bool { return v == variation || v == keycap }) {
		return !unicode.IsLetter(runes[0])
	}
	return false
}

// isPicture reports whether a character is shown as a picture by itself.
func isPicture(r rune) bool {
	switch {
	case r >= 0x1f300 && r <= 0x1faff, r >= 0x1f1e6 && r <= 0x1f1ff, r >= 0x2600 && r <= 0x27bf, r >= 0x2b00 && r <= 0x2bff, r == 0x231a, r == 0x231b, r == 0x23f0, r == 0x23f3:
		return true
	}
	return false
}
