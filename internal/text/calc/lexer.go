package calc

import (
	_ "embed"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"xiaozhi/internal/text/spoken"
)

// kind is the kind of a token.
type kind int

const (
	end kind = iota
	number
	sign // an operator, a parenthesis or a comma: its text says which
	name // of a function or a constant
	bad
)

// token is the next thing in an expression.
type token struct {
	kind  kind
	text  string
	value *big.Rat // of a number
	at    int      // byte offset
	said  string   // as it was written
}

// lexer cuts an expression into tokens.
type lexer struct {
	text   string
	offset int
	words  [][2]string
	calls  int // open calls of functions: a comma within is no part of a number
}

// wordsFile has the spoken forms of signs and names, longer ones before their
// beginnings; unitsFile what a number can be multiplied by behind it. Both have
// two columns, with a tab between them.
//
//go:embed words.txt
var wordsFile string

//go:embed units.txt
var unitsFile string

// columns reads a file of two columns, in its order.
func columns(file string) [][2]string {
	var rows [][2]string
	for line := range strings.Lines(file) {
		left, right, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		rows = append(rows, [2]string{left, right})
	}
	return rows
}

// next is the next token.
func (l *lexer) next() token {
	rest := strings.TrimLeft(l.text[l.offset:], " \t\r\n")
	at := len(l.text) - len(rest)
	l.offset = at
	if rest == "" {
		return token{kind: end, at: at}
	}
	if c := rest[0]; c >= '0' && c <= '9' || c == '.' {
		return l.number()
	}
	for _, w := range l.words {
		if after, ok := strings.CutPrefix(rest, w[0]); ok && (!letter(w[0][0]) || after == "" || !letter(after[0])) {
			l.offset += len(w[0])
			t := token{kind: sign, text: w[1], at: at}
			if _, ok := constant(t.text); ok || isFunction(t.text) {
				t.kind = name
			}
			return t
		}
	}
	if decimal, after, ok := spoken.LeadingDecimal(rest); ok {
		if v, ok := new(big.Rat).SetString(decimal); ok {
			l.offset = len(l.text) - len(after)
			return token{kind: number, text: decimal, value: l.scaled(v), at: at}
		}
	}
	if n := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz")); n > 0 {
		l.offset += n
		return token{kind: name, text: rest[:n], at: at}
	}
	_, size := utf8.DecodeRuneInString(rest)
	l.offset += size
	if strings.Contains("+-*/%^!(),", rest[:size]) {
		return token{kind: sign, text: rest[:size], at: at}
	}
	return token{kind: bad, text: rest[:size], at: at}
}

func letter(b byte) bool { return b >= 'a' && b <= 'z' }

// number reads 1,234.5 and 1e6: digits, groups of three, a fraction, an exponent.
func (l *lexer) number() token {
	rest, at := l.text[l.offset:], l.offset
	n := digits(rest)
	grouped := n > 0 && n <= 3 && l.calls == 0
	for grouped && n <= 3+4*12 && strings.HasPrefix(rest[n:], ",") && digits(rest[n+1:]) == 3 {
		n += 4
	}
	if strings.HasPrefix(rest[n:], ".") {
		n += 1 + digits(rest[n+1:])
	}
	if e := rest[n:]; len(e) > 1 && e[0] == 'e' {
		skip := 1
		if e[1] == '+' || e[1] == '-' {
			skip = 2
		}
		if d := digits(e[skip:]); d > 0 && d <= 3 {
			n += skip + d
		}
	}
	l.offset += n
	text := strings.ReplaceAll(rest[:n], ",", "")
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return token{kind: bad, text: rest[:n], at: at}
	}
	return token{kind: number, text: text, value: l.scaled(v), at: at}
}

// scaled reads the unit that a number in digits may have, and what is said after
// it: 1.5万, 3万5千, 2 million.
func (l *lexer) scaled(v *big.Rat) *big.Rat {
	last := int64(1e12) // the next unit must be a smaller one
	total := new(big.Rat)
	for {
		rest := l.text[l.offset:]
		unit, size := scale(rest)
		if unit == 1 || unit >= last {
			return total.Add(total, v)
		}
		l.offset, last = l.offset+size, unit
		total.Add(total, v.Mul(v, big.NewRat(unit, 1)))
		n := digits(l.text[l.offset:])
		if next, _ := scale(l.text[l.offset+n:]); n == 0 || n > 4 || next == 1 || next >= last {
			return total
		}
		v, _ = new(big.Rat).SetString(l.text[l.offset : l.offset+n])
		l.offset += n
	}
}

// scale is the unit that text begins with, 1 for none.
func scale(text string) (unit int64, size int) {
	for _, u := range columns(unitsFile) {
		if after, ok := strings.CutPrefix(text, u[0]); ok && (after == "" || !letter(after[0])) {
			unit, _ = strconv.ParseInt(u[1], 10, 64) // the file holds numbers
			return unit, len(u[0])
		}
	}
	return 1, 0
}

// digits counts those at the beginning.
func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }
