package intent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// Tongue judges in the language of a turn. For Chinese and English that is what the functions of
// this package do; in another language only its own Words count, and rules about lengths.
type Tongue struct {
	Lang  text.Lang
	Words *prompts.Words // nil: none are known
}

// words returns the words of the language.
func (t Tongue) words() *prompts.Words {
	if t.Words == nil {
		return &prompts.Words{}
	}
	return t.Words
}

// Classify judges words over a reply as the function [Classify] does.
func (t Tongue) Classify(words string, stops []string) Kind {
	if t.Lang.IsOwn() {
		return Classify(words, t.Lang, slices.Concat(stops, t.words().Stop))
	}
	own := t.lists()
	each := func(string) int { return 1 }
	return classify(words, stops, []*lists{own}, each, func(said string) bool {
		return oneOf(said, own.Commands) || t.enough(said, own)
	})
}

// The length from which words that are no sign of listening are a request, in units: a word, a
// syllable of Korean, a Chinese sign; a kana is half a one.
const enoughHalves = 4

// enough reports whether words are long enough to be a request.
func (t Tongue) enough(said string, own *lists) bool {
	for {
		after, kind := cutSpoken(said, nil, []*lists{own})
		if kind != spokenSound {
			break
		}
		said = after
	}
	halves, within := 0, false
	for _, r := range said {
		letter := r != '_' && !text.IsCJK(r)
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			halves++
		case text.IsCJK(r), letter && !within:
			halves += 2
		}
		within = letter
	}
	return halves >= enoughHalves
}

// lists returns the words as [classify] compares them.
func (t Tongue) lists() *lists {
	w := t.words()
	return &lists{
		Stops: signsOf(w.Stop), Listening: signsOf(w.Listening), Sounds: signsOf(w.Sounds),
		Beside: signsOf(slices.Concat(w.Beside, w.Wake)), Commands: signsOf(w.Commands),
	}
}

// signsOf returns words as they are compared, separated by spaces.
func signsOf(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = spokenSigns(word)
	}
	return strings.Join(all, " ")
}

// Complete judges as the function [Complete] does.
func (t Tongue) Complete(words string) Completeness {
	if t.Lang.IsOwn() {
		return Complete(words, t.Lang)
	}
	return complete(words, t.complete)
}

// complete judges a text that ends with a letter or a figure.
func (t Tongue) complete(said string) Completeness {
	w := t.words()
	if last, _ := utf8.DecodeLastRuneInString(said); unicode.IsDigit(last) {
		return Undecided
	}
	for _, whole := range [][]string{w.Stop, w.Exit, w.Commands, w.Assents, w.Negations, w.Listening} {
		if text.In(said, whole) {
			return Finished
		}
	}
	spoken := spokenSigns(said)
	for _, word := range w.More {
		if before, ok := strings.CutSuffix(spoken, spokenSigns(word)); ok && t.begins(before) {
			return Unfinished
		}
	}
	return Undecided
}

// begins reports whether a word may begin behind what was said before it: everywhere where none are
// told apart by spaces, and where they end with one.
func (t Tongue) begins(before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || last == '_' || text.IsCJK(last)
}

// Echo reports as the function [Echo] does.
func (t Tongue) Echo(heard, playing string) bool {
	if t.Lang.IsOwn() {
		return Echo(heard, playing)
	}
	negations := signsOf(t.words().Negations)
	turns := func(unit string) bool { return oneOf(unit, negations) }
	return echo(heard, playing, turns, func() bool { return t.Classify(heard, nil) == Stop })
}

// YesNo reads an answer as the function [YesNo] does.
func (t Tongue) YesNo(words, action string) Answer {
	if t.Lang.IsOwn() {
		return YesNo(words, action)
	}
	said := spokenSigns(words)
	switch {
	case t.negates(said):
		return No
	case strings.ContainsAny(words, "?？"):
		return Unclear
	}
	w := t.words()
	yes := &lists{Stops: signsOf(w.Assents), Sounds: signsOf(w.Sounds), Beside: signsOf(w.Beside)}
	for word := range strings.SplitSeq(spokenSigns(action), "_") {
		yes.Beside += " " + word
	}
	found := false
	for said != "" {
		after, kind := cutSpoken(said, nil, []*lists{yes})
		if kind == spokenOther {
			return Unclear
		}
		found = found || kind == spokenStop // of these lists an assent
		said = after
	}
	if found {
		return Yes
	}
	return Unclear
}

// negates reports whether what was said holds a negation: as a word, or, where no spaces tell words
// apart, as a part that is no single sign.
func (t Tongue) negates(said string) bool {
	spaced := "_" + said + "_"
	for _, word := range t.words().Negations {
		no := spokenSigns(word)
		first, _ := utf8.DecodeRuneInString(no)
		switch {
		case no == "":
		case strings.Contains(spaced, "_"+no+"_"),
			text.IsCJK(first) && utf8.RuneCountInString(no) > 1 && strings.Contains(said, no):
			return true
		}
	}
	return false
}

// Answering reports as the function [Answering] does.
func (t Tongue) Answering(words string) bool {
	if t.Lang.IsOwn() {
		return Answering(words, t.Lang)
	}
	said := spokenSigns(words)
	if _, kind := cutSpoken(said, nil, []*lists{{Stops: signsOf(t.words().Assents)}}); kind == spokenStop {
		return true
	}
	return t.Classify(words, nil) != Request
}
