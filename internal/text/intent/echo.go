package intent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

// The figures of the echo guard.
const (
	echoRunes  = 500 // of each text, the last ones, are compared
	echoErrors = 35  // per cent of what was heard that may be wrong in an echo
	echoExact  = 2   // units up to which an echo has to be exact
	echoShort  = 8   // units up to which it is short
	echoEnd    = 3   // new units in a row at an end that are the user's; one less in a short text
)

// Echo reports whether what the microphone heard is (mostly) the speaker's own words coming back,
// for devices without echo cancellation. playing is the text that was played in the last seconds.
// It costs at most 500 times 500 steps.
//
// An echo is a piece of playing: its words in their order and close together, about a third of
// them misheard at most. Chinese is compared by signs, other languages by words that may differ
// by a letter or two. It is no echo, however similar, when
//   - three or more words in a row at its beginning or end are new (two, of up to eight): the
//     user went on where the echo ends;
//   - a word that turns things around is new in it (不, "not"): the user corrects the reply;
//   - it has one or two words, and they are not in playing exactly;
//   - it is a stop-word and nothing else, and playing is more than that.
//
// A user who only repeats words of the reply, or adds one, is taken for an echo.
func Echo(heard, playing string) bool {
	return echo(heard, playing, turnsAround, func() bool { return Classify(heard, "", nil) == Stop })
}

// echo compares two texts. turns reports whether a unit turns things around, stops whether the whole is a wish for silence.
func echo(heard, playing string, turns func(unit string) bool, stops func() bool) bool {
	h, s := echoUnits(heard), echoUnits(playing)
	if len(h) == 0 || len(s) == 0 {
		return false
	}
	if slices.Equal(h, s) {
		return true
	}
	if stops() {
		return false
	}
	end := int32(echoEnd)
	switch n := len(h); {
	case n <= echoExact:
		return !slices.ContainsFunc(h, turns) && containsUnits(s, h)
	case n <= echoShort:
		end--
	}
	limit := int32(1) // of three or four units none may be wrong: 蓝色的灯 is not an echo of 红色的灯
	if len(h) > 4 {
		limit = int32(min(len(h), echoRunes) * 2 * echoErrors / 100) // in half errors
	}
	best := alignEcho(h, s, turns)
	return !best.turned && best.lead < end && best.trail < end && best.cost <= limit
}

// echoPath is one alignment of the heard units with the played ones.
type echoPath struct {
	cost    int32 // two for each unit that was misheard or is new, one for each that was not heard
	matched int32
	lead    int32 // new units before the first that matches
	trail   int32 // new units since the last that matches
	turned  bool  // one of the new ones turns things around
}

// better reports whether p is to be preferred to q: the cheaper one, and of two
// that cost the same the one that leaves the new words together at the ends.
func (p echoPath) better(q echoPath) bool {
	switch {
	case p.cost != q.cost:
		return p.cost < q.cost
	case p.matched != q.matched:
		return p.matched > q.matched
	case p.lead+p.trail != q.lead+q.trail:
		return p.lead+p.trail > q.lead+q.trail
	}
	return p.lead > q.lead
}

// miss returns p with a unit that was heard and not played.
func (p echoPath) miss(turns bool) echoPath {
	p.cost += 2
	if p.matched == 0 {
		p.lead++
	}
	p.trail++
	p.turned = p.turned || turns
	return p
}

// alignEcho returns the cheapest alignment of all of h with a piece of s.
func alignEcho(h, s []string, turnsAround func(string) bool) echoPath {
	above, row := make([]echoPath, len(s)+1), make([]echoPath, len(s)+1)
	for _, unit := range h {
		turns := turnsAround(unit)
		row[0] = above[0].miss(turns)
		for j, said := range s {
			best, match, skip := above[j+1].miss(turns), above[j].miss(turns), row[j]
			if sounded(unit, said) {
				match = above[j]
				match.matched, match.trail = match.matched+1, 0
			}
			skip.cost++ // said was not heard
			for _, path := range [...]echoPath{match, skip} {
				if path.better(best) {
					best = path
				}
			}
			row[j+1] = best
		}
		above, row = row, above
	}
	best := above[0]
	for _, path := range above {
		if path.better(best) {
			best = path
		}
	}
	return best
}

// containsUnits reports whether h stands in s as it is.
func containsUnits(s, h []string) bool {
	for i := 0; i+len(h) <= len(s); i++ {
		if slices.Equal(s[i:i+len(h)], h) {
			return true
		}
	}
	return false
}

// echoUnits returns the signs, figures and words of the end of a text. Chinese
// figures become digits, for recognisers write them as they like: 二十六, 26.
func echoUnits(words string) []string {
	for n := utf8.RuneCountInString(words); n > echoRunes; n-- {
		_, size := utf8.DecodeRuneInString(words)
		words = words[size:]
	}
	var units []string
	word := 0 // bytes of the word that is being read
	words = spokenSigns(words)
	for i, r := range words {
		switch alone := text.IsCJK(r) || unicode.IsDigit(r); {
		case alone || r == '_':
			if word > 0 {
				units = append(units, words[i-word:i])
			}
			word = 0
			if alone {
				units = appendSign(units, r)
			}
		default:
			word += utf8.RuneLen(r)
		}
	}
	if word > 0 {
		units = append(units, words[len(words)-word:])
	}
	return units
}

// appendSign adds a sign, or the digit for a Chinese figure. The signs that only
// say a figure's rank add nothing: 二十六 is 26, and 十四 is 14.
func appendSign(units []string, r rune) []string {
	within := len(units) > 0 && oneOf(units[len(units)-1], "0 1 2 3 4 5 6 7 8 9")
	switch i := strings.IndexRune("零一二三四五六七八九", r); {
	case i >= 0:
		r = rune('0' + i/len("零"))
	case r == '两':
		r = '2'
	case within && (r == '十' || r == '百'):
		return units
	case r == '十':
		r = '1'
	}
	return append(units, string(r))
}

// turnsAround reports whether a unit changes the sense of what it stands in.
func turnsAround(unit string) bool {
	return oneOf(unit, zh().Turns) || oneOf(unit, en().Turns)
}

// sounded reports whether a unit may be what was heard of another: Chinese signs are equal or
// not, words may differ by a letter from four letters on, by two from seven on.
func sounded(a, b string) bool {
	if a == b {
		return true
	}
	n, limit := max(len(a), len(b)), 1
	if n >= 7 {
		limit = 2
	}
	if first, _ := utf8.DecodeRuneInString(a); n < 4 || text.IsCJK(first) || n-min(len(a), len(b)) > limit {
		return false
	}
	return editsBetween(a, b) <= limit
}

// editsBetween counts the letters that have to be changed, added or taken away
// to make one word of another.
func editsBetween(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
