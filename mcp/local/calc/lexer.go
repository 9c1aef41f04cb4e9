package calc

import (
	"math/big"
	"strings"
	"unicode/utf8"
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
	text    string
	offset  int
	options Options
	calls   int // open calls of functions: a comma within is no part of a number
}

// words are the spoken forms of signs, longer ones before their beginnings.
func words() [][2]string {
	return [][2]string{
		{"divided by", "/"},
		{"multiplied by", "*"},
		{"to the power of", "^"},
		{"the square root of", "sqrt"},
		{"square root of", "sqrt"},
		{"percent of", "%*"},
		{"the cube root of", "cbrt"},
		{"cube root of", "cbrt"},
		{"negative", "-"},
		{"plus", "+"},
		{"minus", "-"},
		{"times", "*"},
		{"over", "/"},
		{"modulo", "mod"},
		{"mod", "mod"},
		{"squared", "²"},
		{"cubed", "³"},
		{"percent", "percent"},
		{"of", "*"},
		{"factorial", "!"},
		{"加上", "+"},
		{"加", "+"},
		{"减去", "-"},
		{"减", "-"},
		{"乘以", "*"},
		{"乘上", "*"},
		{"乘", "*"},
		{"除以", "/"},
		{"除", "/"},
		{"取余", "mod"},
		{"模", "mod"},
		{"的平方根", "root"},
		{"的立方根", "cube root"},
		{"开平方", "root"},
		{"开方", "root"},
		{"开立方", "cube root"},
		{"的平方", "²"},
		{"的立方", "³"},
		{"平方", "²"},
		{"立方", "³"},
		{"根号下", "sqrt"},
		{"根号", "sqrt"},
		{"百分之百", "whole"},
		{"百分之", "hundredths"},
		{"千分之", "thousandths"},
		{"分之", "parts"},
		{"又", "and"},
		{"负", "-"},
		{"的阶乘", "!"},
		{"阶乘", "!"},
		{"左括号", "("},
		{"右括号", ")"},
		{"×", "*"},
		{"·", "*"},
		{"÷", "/"},
		{"−", "-"},
		{"–", "-"},
		{"**", "^"},
		{"²", "²"},
		{"³", "³"},
		{"√", "sqrt"},
		{"π", "pi"},
		{"圆周率", "pi"},
		{"°", "°"},
		{"度", "°"},
		{"次方", "power"},
		{"的", "'s"},
	}
}

// next is the next token.
func (l *lexer) next() token {
	l.offset += len(l.text[l.offset:]) - len(strings.TrimLeft(l.text[l.offset:], " \t\r\n"))
	rest, at := l.text[l.offset:], l.offset
	if rest == "" {
		return token{kind: end, at: at}
	}
	if c := rest[0]; c >= '0' && c <= '9' || c == '.' {
		return l.number()
	}
	for _, w := range words() {
		if after, ok := strings.CutPrefix(rest, w[0]); ok && (!letter(w[0][0]) || after == "" || !letter(after[0])) {
			l.offset += len(w[0])
			return spelled(w[1], at)
		}
	}
	if l.options.Number != nil {
		if decimal, after, ok := l.options.Number(rest); ok {
			if v, ok := new(big.Rat).SetString(decimal); ok {
				l.offset = len(l.text) - len(after)
				return token{kind: number, text: decimal, value: l.scaled(v), at: at}
			}
		}
	}
	n := 0
	for n < len(rest) && letter(rest[n]) {
		n++
	}
	if n > 0 {
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

// spelled is the token of a word.
func spelled(text string, at int) token {
	if text == "sqrt" || text == "cbrt" || text == "pi" || text == "whole" {
		return token{kind: name, text: text, at: at}
	}
	return token{kind: sign, text: text, at: at}
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
		total.Add(total, v.Mul(v, new(big.Rat).SetInt64(unit)))
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
	for _, u := range []struct {
		name string
		unit int64
	}{
		{"千亿", 1e11},
		{"百亿", 1e10},
		{"十亿", 1e9},
		{"亿", 1e8},
		{"千万", 1e7},
		{"百万", 1e6},
		{"十万", 1e5},
		{"万", 1e4},
		{"千", 1000},
		{"百", 100},
		{" thousand", 1000},
		{" million", 1e6},
		{" billion", 1e9},
	} {
		if after, ok := strings.CutPrefix(text, u.name); ok && (after == "" || !letter(after[0])) {
			return u.unit, len(u.name)
		}
	}
	return 1, 0
}

// digits counts those at the beginning.
func digits(text string) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}
