package pocketsphinx

import (
	"errors"
	"fmt"
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
