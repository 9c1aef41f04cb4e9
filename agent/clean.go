package agent

import (
	"xiaozhi/internal/text"
	segments "xiaozhi/internal/text/sentence"
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

// newSentence prepares a segment of the answer.
func newSentence(words, language string) sentence {
	s := segments.New(words, text.Lang(language))
	return sentence{display: s.Display, speech: s.Speech, language: string(s.Language), emoji: s.Emoji, emotion: s.Emotion, keep: true}
}

// face resolves the sentence's emoji or tag to an emotion a device knows.
func (s *sentence) face() {
	f := segments.Segment{Emoji: s.emoji, Emotion: s.emotion}
	f.Face()
	s.emoji, s.emotion = f.Emoji, f.Emotion
}

// languageOf returns the language of words, "" if they have none.
func languageOf(words string) string { return string(text.Of(words)) }

// These stand in for [text.Bare], [text.In] and [text.Join] where a local
// variable has the package's name.
func bare(words string) string                 { return text.Bare(words) }
func isOneOf(words string, list []string) bool { return text.In(words, list) }
func joinText(a, b string) string              { return text.Join(a, b) }
