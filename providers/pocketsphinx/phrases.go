package pocketsphinx

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
)

// Limits of the phrases, which may come from outside (tool names of devices).
const (
	maxPhrases     = 300 // of one request; the rest is left out
	maxPhraseBytes = 200
	maxDepth       = 4 // brackets within brackets
)

// numberRule is the value of <number>: the spoken numbers 0 to 100.
const numberRule = `<number> = zero | <unit> | <teen> | <tens> [<unit>] | [one | a] hundred;
<unit> = one | two | three | four | five | six | seven | eight | nine;
<teen> = ten | eleven | twelve | thirteen | fourteen | fifteen | sixteen | seventeen | eighteen | nineteen;
<tens> = twenty | thirty | forty | fifty | sixty | seventy | eighty | ninety;
`

// phraseToJSGF turns a phrase into one JSGF alternative. A phrase is words,
// <number>, alternatives in round brackets (up | down) and what may be left out
// in square ones [please]. Case, punctuation and underscores do not count, and
// digits are read as words. Every word of the result is made of a-z and the
// apostrophe and is known, so that it can neither break the grammar nor be refused.
func phraseToJSGF(phrase string, known func(word string) bool) (string, error) {
	if len(phrase) > maxPhraseBytes {
		return "", fmt.Errorf("longer than %d bytes", maxPhraseBytes)
	}
	tokens, err := phraseTokens(phrase)
	if err != nil {
		return "", err
	}
	p := phraseParser{tokens: tokens, known: known}
	if err := p.alternatives(0); err != nil {
		return "", err
	}
	if p.next < len(p.tokens) {
		return "", fmt.Errorf("a %q too many", p.tokens[p.next])
	}
	if !p.solid {
		return "", errors.New("no word that must be said")
	}
	return strings.Join(p.out, " "), nil
}

// phraseTokens splits a phrase into words, <number> and the signs ( ) [ ] |.
func phraseTokens(phrase string) ([]string, error) {
	var tokens []string
	word := strings.Builder{}
	flush := func() error {
		spoken, err := sayWord(strings.Trim(word.String(), "'"))
		tokens = append(tokens, spoken...)
		word.Reset()
		return err
	}
	rest := strings.ReplaceAll(strings.ToLower(phrase), "’", "'")
	for len(rest) > 0 {
		if after, ok := strings.CutPrefix(rest, "<number>"); ok {
			if err := flush(); err != nil {
				return nil, err
			}
			tokens, rest = append(tokens, "<number>"), after
			continue
		}
		r := []rune(rest)[0]
		rest = rest[len(string(r)):]
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '\'':
			word.WriteRune(r)
			continue
		case unicode.IsLetter(r) || unicode.IsNumber(r) || r == unicode.ReplacementChar:
			return nil, fmt.Errorf("the sign %q is not English", r)
		}
		if err := flush(); err != nil {
			return nil, err
		}
		switch r {
		case '(', ')', '[', ']', '|':
			tokens = append(tokens, string(r))
		case '<', '>':
			return nil, errors.New("the only rule a phrase may name is <number>")
		}
	}
	err := flush()
	return tokens, err
}

// phraseParser checks the brackets of a phrase and copies it out as JSGF.
type phraseParser struct {
	tokens []string
	next   int
	known  func(string) bool
	out    []string
	solid  bool // a word or a number stands outside all square brackets, in every alternative
}

// alternatives reads sequences that are parted by |.
func (p *phraseParser) alternatives(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("brackets deeper than %d", maxDepth)
	}
	solid := true
	for {
		one, err := p.sequence(depth)
		if err != nil {
			return err
		}
		solid = solid && one
		if p.peek() != "|" {
			p.solid = solid
			return nil
		}
		p.take()
	}
}

// sequence reads words and bracketed parts; it must not be empty. It says
// whether something in it has to be spoken.
func (p *phraseParser) sequence(depth int) (solid bool, err error) {
	start := p.next
	for {
		switch t := p.peek(); t {
		case "(", "[":
			p.take()
			if err := p.alternatives(depth + 1); err != nil {
				return false, err
			}
			solid = solid || t == "(" && p.solid
			if want := map[string]string{"(": ")", "[": "]"}[t]; p.peek() != want {
				return false, fmt.Errorf("a %q is missing", want)
			}
			p.take()
		case ")", "]", "|", "":
			if p.next == start {
				return false, errors.New("nothing to say")
			}
			return solid, nil
		default:
			if t != "<number>" && !p.known(t) {
				return false, fmt.Errorf("the word %q is not in the dictionary", t)
			}
			solid = true
			p.take()
		}
	}
}

// peek returns the next token, or "" at the end.
func (p *phraseParser) peek() string {
	if p.next == len(p.tokens) {
		return ""
	}
	return p.tokens[p.next]
}

// take copies the next token out.
func (p *phraseParser) take() {
	p.out = append(p.out, p.tokens[p.next])
	p.next++
}

// grammarText makes the JSGF grammar of a request's phrases. Phrases that
// cannot be used are left out and logged at Debug. With no usable phrase the
// grammar is "".
func grammarText(phrases []string, known func(string) bool, log *slog.Logger) string {
	if len(phrases) > maxPhrases {
		log.Debug("phrases left out of the grammar", "over_limit", len(phrases)-maxPhrases)
		phrases = phrases[:maxPhrases]
	}
	seen := make(map[string]bool, len(phrases))
	var usable []string
	for _, phrase := range phrases {
		alternative, err := phraseToJSGF(phrase, known)
		if err != nil {
			log.Debug("phrase left out of the grammar", "phrase", phrase, "err", err)
			continue
		}
		if !seen[alternative] {
			seen[alternative] = true
			usable = append(usable, alternative)
		}
	}
	if len(usable) == 0 {
		return ""
	}
	return "#JSGF V1.0;\ngrammar phrases;\npublic <phrase> = " + strings.Join(usable, "\n | ") + ";\n" + numberRule
}

var units = [...]string{
	"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
	"eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
}

var tens = [...]string{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}

// sayWord returns one written word as it is spoken: digits become number words, up
// to 999. A mix of letters and digits is an error.
func sayWord(word string) ([]string, error) {
	if word == "" {
		return nil, nil
	}
	digits := 0
	for i := range len(word) {
		if word[i] >= '0' && word[i] <= '9' {
			digits++
		}
	}
	if digits == 0 {
		return []string{word}, nil
	}
	n, err := strconv.Atoi(word)
	if digits < len(word) || err != nil || n > 999 {
		return nil, fmt.Errorf("%q is not a word or a number up to 999", word)
	}
	return sayNumber(n), nil
}

// sayNumber reads 0 to 999 in words.
func sayNumber(n int) []string {
	var words []string
	if n >= 100 {
		words = append(words, units[n/100], "hundred")
		if n %= 100; n == 0 {
			return words
		}
	}
	if n >= 20 {
		words = append(words, tens[n/10])
		if n %= 10; n == 0 {
			return words
		}
	}
	return append(words, units[n])
}
