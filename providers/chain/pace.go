package chain

import (
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"xiaozhi/providers"
)

// What is known of speech before a voice was heard: a slow one, because an
// estimate that is early says a word twice, and one that is late swallows it.
const (
	slowUnit  = 280 * time.Millisecond // a Chinese syllable, or three or four letters
	leadIn    = 300 * time.Millisecond // of silence before the first word, and of doubt
	lookBack  = 6.0                    // units; a clause that begins no further back is said again from its beginning
	fewUnits  = 5.0                    // a shorter sentence tells nothing of the pace
	forgetful = 0.9                    // how much of a slow sentence is remembered after the next
)

// pace remembers the time that a voice takes for a unit of text, by language: that
// of the slowest recent sentence. Its methods may be called at the same time.
type pace struct {
	mu   sync.Mutex
	unit map[string]time.Duration
}

// learn takes in a sentence that was said whole.
func (p *pace) learn(req providers.TTSRequest, sound time.Duration) {
	n := units(req.Text)
	if n < fewUnits {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unit == nil {
		p.unit = map[string]time.Duration{}
	}
	one := time.Duration(float64(sound) / n)
	p.unit[req.Language] = max(one, time.Duration(forgetful*float64(p.unit[req.Language])+(1-forgetful)*float64(one)))
}

// rest returns the part of a sentence that is left after that much sound.
func (p *pace) rest(req providers.TTSRequest, sound time.Duration) string {
	p.mu.Lock()
	unit := p.unit[req.Language]
	p.mu.Unlock()
	if unit <= 0 {
		unit = slowUnit
	}
	return restOf(req.Text, float64(sound-leadIn)/float64(unit))
}

// restOf returns text without its first units: from the beginning of the clause that
// the estimate falls in, if that is near, else from the beginning of the word.
// It is "" if no word is left.
func restOf(text string, said float64) string {
	var sum, clauseSum float64
	clause, word := 0, 0
	inWord := false
	for i, r := range text {
		han, letter := unicode.Is(unicode.Han, r), unicode.IsLetter(r) || unicode.IsDigit(r)
		if letter && (!inWord || han) {
			word = i
		}
		n, pause := weighSign(text[i:], r)
		if letter && sum+n > said {
			if sum-clauseSum <= lookBack {
				word = clause
			}
			return strings.TrimSpace(text[word:])
		}
		inWord = !han && (letter || inWord && !pause && !unicode.IsSpace(r)) // as in "it's" and "3.5"
		sum += n
		if pause {
			clause, clauseSum = i+utf8.RuneLen(r), sum
		}
	}
	return ""
}

// units returns the length of a text as speech.
func units(text string) (sum float64) {
	for i, r := range text {
		n, _ := weighSign(text[i:], r)
		sum += n
	}
	return sum
}

// weighSign says how long the first sign of text, r, takes to be said, and
// whether it is a pause: a Chinese syllable, a digit and a pause are about as long
// as three or four letters.
func weighSign(text string, r rune) (n float64, pause bool) {
	switch {
	case unicode.Is(unicode.Han, r), unicode.IsDigit(r):
		return 1, false
	case unicode.IsLetter(r):
		return 0.3, false
	case strings.ContainsRune("，。、；：！？…\n", r),
		strings.ContainsRune(",.;:!?", r) && (len(text) == 1 || text[1] == ' '): // not as in "3.5"
		return 0.8, true
	}
	return 0, false
}
