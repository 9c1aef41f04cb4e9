package recognition

import (
	"cmp"

	"xiaozhi/internal/text"
)

// sentence is a part of an utterance.
type sentence struct {
	part string // its name in its session, while that goes on
	text string
	done bool
}

// sentences is the text of an utterance, in the order in which its parts were heard of.
type sentences []sentence

// at returns the sentence that a message is about.
func (s *sentences) at(part string) *sentence {
	for i := len(*s) - 1; i >= 0; i-- {
		switch one := &(*s)[i]; {
		case part != "" && one.part == part, part == "" && one.part == "" && !one.done:
			return one
		case part == "" && one.done:
			i = 0 // the one that goes on is behind it
		}
	}
	*s = append(*s, sentence{part: part})
	return &(*s)[len(*s)-1]
}

// add takes a message. It says whether all may still be the text of an utterance.
func (s *sentences) add(r Result) bool {
	switch r.Kind {
	case Partial, Append, Sentence:
		one := s.at(r.Part)
		switch {
		case r.Kind == Sentence:
			one.text, one.done = cmp.Or(r.Text, one.text), true
		case one.done: // it comes late
		case r.Kind == Append:
			one.text += r.Text
		default:
			one.text = r.Text
		}
	case Over:
		if r.Text != "" {
			s.at(r.Part).text = r.Text
		}
		s.end()
	case Nothing:
	}
	return s.length() <= maxText
}

// end ends all sentences of a session: those of the next have names of their own.
func (s *sentences) end() {
	for i := range *s {
		(*s)[i].part, (*s)[i].done = "", true
	}
}

// length is that of the text, in bytes, and of what it takes to hold it.
func (s *sentences) length() (n int) {
	for _, one := range *s {
		n += len(one.text) + 8
	}
	return n
}

// text joins all sentences.
func (s *sentences) text() (all string) {
	for _, one := range *s {
		all = text.Join(all, one.text)
	}
	return all
}
