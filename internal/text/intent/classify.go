package intent

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

// Kind says what something is that the user says over a reply.
type Kind int

// The kinds.
const (
	Noise       Kind = iota // no words, or one that says nothing: a cough, a noise
	Backchannel             // a sign of listening: 嗯, "uh-huh"
	Stop                    // a wish for silence and nothing else: 别说了, "hold on"
	Request                 // words to be answered
)

// backchannelLimit is the number of signs or words of a list up to which they are a
// sign of listening (好的好的). A longer text is a request.
const backchannelLimit = 4

// Classify judges the transcript of words that were said over a reply (docs/behaviours.md 31);
// it does not look whether they are an [Echo]. The language is that of the conversation; stops
// are the stop-words of the configuration, beside the ones that are known here.
//
// A stop-word counts at once, however short, and words beside it make a request (停一下我问你).
// Otherwise it takes two signs or two words that are not all of the list to interrupt: one alone
// is what recognisers make of a cough, of a door and of the speaker's own echo. Chinese counts
// by signs, for it has no spaces.
func Classify(words string, lang text.Lang, stops []string) Kind {
	return classify(words, stops, []*lists{&zh().lists, &en().lists}, func(said string) int { return countSpoken(said, lang) }, func(said string) bool {
		return oneOf(said, en().Commands) || countSpoken(withoutSounds(said), lang) >= 2
	})
}

// classify judges by lists. length counts the signs or words of a sign of listening; requests reports
// whether what is no such sign is enough to be a request.
func classify(words string, stops []string, by []*lists, length func(string) int, requests func(said string) bool) Kind {
	said := spokenSigns(words)
	stopped, listening, only, rest := false, 0, true, said
	for rest != "" {
		after, kind := cutSpoken(rest, stops, by)
		if kind == spokenOther {
			break
		}
		signs := length(rest[:len(rest)-len(after)])
		switch kind {
		case spokenStop:
			stopped = true
		case spokenListening:
			listening += signs
		case spokenBeside:
			only = false
		case spokenSound, spokenOther:
		}
		rest = after
	}
	switch {
	case said == "":
		return Noise
	case rest == "" && stopped:
		return Stop
	case rest == "" && only && listening <= backchannelLimit:
		return Backchannel
	case requests(said):
		return Request
	}
	return Noise
}

// spoken classifies one word of what was said over a reply.
type spoken int

const (
	spokenOther     spoken = iota
	spokenStop             // asks for silence
	spokenListening        // a sign of listening
	spokenSound            // says nothing by itself
	spokenBeside           // stands beside a stop-word: please, you
)

// cutSpoken takes the longest word of any list away from the beginning of what was said.
func cutSpoken(said string, stopWords []string, by []*lists) (after string, kind spoken) {
	after = said
	try := func(word string, k spoken) {
		if rest, ok := strings.CutPrefix(said, word); ok && word != "" && len(rest) < len(after) && apart(word, rest) {
			after, kind = strings.TrimPrefix(rest, "_"), k
		}
	}
	for _, word := range stopWords {
		try(spokenSigns(word), spokenStop)
	}
	for _, l := range by {
		for i, words := range [...]string{l.Stops, l.Listening, l.Sounds, l.Beside} {
			for word := range strings.FieldsSeq(words) {
				try(word, spokenStop+spoken(i))
			}
		}
	}
	return after, kind
}

// apart reports whether a word ends where the rest begins: "stop" does not end in "stopped".
func apart(word, rest string) bool {
	last, _ := utf8.DecodeLastRuneInString(word)
	next, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || next == '_' || text.IsCJK(last) || text.IsCJK(next)
}

// withoutSounds takes away the sounds that what was said begins with.
func withoutSounds(said string) string {
	for {
		after, kind := cutSpoken(said, nil, []*lists{&zh().lists, &en().lists})
		if kind != spokenSound {
			return said
		}
		said = after
	}
}

// countSpoken counts signs and words. A single Latin letter in a Chinese
// conversation does not count: recognisers make it of a noise.
func countSpoken(said string, lang text.Lang) int {
	n, letters := 0, 0
	word := func() {
		if letters > 1 || letters == 1 && !lang.IsChinese() {
			n++
		}
		letters = 0
	}
	for _, r := range said {
		switch {
		case text.IsCJK(r):
			word()
			n++
		case r == '_':
			word()
		default:
			letters++
		}
	}
	word()
	return n
}

// spokenSigns returns a text as it is compared: in lower case and simplified signs, without
// marks and spaces, but with "_" between the words of other languages than Chinese.
func spokenSigns(words string) string {
	var b strings.Builder
	gap := false
	for _, r := range words {
		r = plainLetter(simplified(unicode.ToLower(r)))
		switch {
		case r < 0:
		case r == ' ':
			gap = true
		default:
			if last, _ := utf8.DecodeLastRuneInString(b.String()); gap && b.Len() > 0 && !text.IsCJK(r) && !text.IsCJK(last) {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(r)
		}
	}
	return b.String()
}
