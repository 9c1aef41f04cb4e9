package calc

import (
	"math"
	"math/big"
	"unicode/utf8"
)

// parser works an expression out while it reads it, by the binding powers of
// its operators (Pratt). After the first error it goes on without harm.
type parser struct {
	lexer  lexer
	token  token // the next one
	before int   // signs of the text that stand before the lexer's
	depth  int
	err    *Error
}

func (p *parser) next() {
	p.token = p.lexer.next()
	p.token.said = p.lexer.text[p.token.at:p.lexer.offset]
}

// fail notes the first error, at the next token.
func (p *parser) fail(c Cause) value { return p.failAt(c, p.token) }

func (p *parser) failAt(c Cause, t token) value {
	if p.err == nil {
		p.err = &Error{Cause: c, At: p.before + utf8.RuneCountInString(p.lexer.text[:t.at]) + 1, Near: t.said}
	}
	return whole(0)
}

// Binding powers, from loose to tight.
const (
	addPower = iota + 1
	timesPower
	signPower
	powerPower
	mixedPower // 三又四分之三
	postfixPower
)

// binding returns the precedence of the next token as an operator, 0 if it ends
// the expression.
func (p *parser) binding() int {
	if p.token.kind == name && p.token.text == "x" && p.startsOperand() {
		return timesPower // 3 x 4
	}
	if p.token.kind != sign {
		return 0
	}
	switch p.token.text {
	case "and":
		return mixedPower
	case "+", "-":
		return addPower
	case "*", "/", "mod", "%*":
		return timesPower
	case "%":
		if p.startsOperand() {
			return timesPower
		}
		return postfixPower
	case "^":
		return powerPower
	case "'s":
		if p.isShare() {
			return timesPower
		}
		return postfixPower
	case "!", "²", "³", "°", "percent", "root", "cube root", "parts":
		return postfixPower
	}
	return 0
}

// startsOperand reports whether what follows the next token is a number, a name
// or a parenthesis: it tells 10 % 3 from 10%.
func (p *parser) startsOperand() bool {
	ahead := p.lexer
	t := ahead.next()
	return t.kind == number || t.kind == name || (t.kind == sign && t.text == "(")
}

// isShare reports whether a part of a number follows the next token, as in
// 八百的百分之十五, 八百的15% and 八百的三分之一; 2的三分之一次方 is a power.
func (p *parser) isShare() bool {
	ahead := p.lexer
	t := ahead.next()
	if t.text == "hundredths" || t.text == "thousandths" {
		return true
	}
	if t.kind != number {
		return false
	}
	switch ahead.next().text {
	case "%", "percent":
		return true
	case "parts":
		return ahead.next().kind == number && ahead.next().text != "power"
	}
	return false
}

// expression reads operators that bind tighter than power.
func (p *parser) expression(power int) value {
	if p.depth++; p.depth > maxDepth {
		return p.fail(TooLarge)
	}
	defer func() { p.depth-- }()
	v := p.operand()
	for p.err == nil {
		b := p.binding()
		if b <= power && (b != powerPower || power != powerPower) || b == 0 {
			break
		}
		operator := p.token
		switch {
		case operator.text == "x":
			operator.text = "*"
		case operator.text == "%" && b == timesPower:
			operator.text = "mod"
		}
		p.next()
		if b == postfixPower {
			v = p.postfix(operator, v)
			continue
		}
		if b == powerPower {
			b-- // the right one first: 2^3^2
		}
		v = p.apply(operator, v, p.expression(b))
	}
	return v
}

// operand reads a number, a sign before one, a function or what is in parentheses.
func (p *parser) operand() value {
	t := p.token
	p.next()
	switch {
	case t.kind == number:
		return p.bounded(t, value{rat: t.value})
	case t.kind == name:
		return p.named(t)
	case t.kind != sign:
	case t.text == "(":
		v := p.expression(0)
		p.expect(")")
		return v
	case t.text == "-":
		return p.expression(signPower).times(big.NewRat(-1, 1))
	case t.text == "+":
		return p.expression(signPower)
	case t.text == "hundredths":
		return p.expression(powerPower).times(big.NewRat(1, 100))
	case t.text == "thousandths":
		return p.expression(powerPower).times(big.NewRat(1, 1000))
	}
	return p.failAt(Syntax, t)
}

func (p *parser) expect(text string) {
	if p.token.kind != sign || p.token.text != text {
		p.fail(Syntax)
		return
	}
	p.next()
}

// named is a constant, or a function with its arguments; one argument needs no
// parentheses.
func (p *parser) named(t token) value {
	if v, ok := constant(t.text); ok {
		return v
	}
	if !isFunction(t.text) {
		return p.failAt(Syntax, t)
	}
	if p.token.kind != sign || p.token.text != "(" {
		return p.call(t, []value{p.expression(powerPower)})
	}
	p.lexer.calls++
	p.next()
	args := []value{p.expression(0)}
	for p.err == nil && p.token.kind == sign && p.token.text == "," {
		p.next()
		args = append(args, p.expression(0))
	}
	p.lexer.calls--
	p.expect(")")
	return p.call(t, args)
}

// postfix applies what stands behind a number.
func (p *parser) postfix(t token, v value) value {
	switch t.text {
	case "%", "percent":
		return v.times(big.NewRat(1, 100))
	case "²":
		return p.power(t, v, whole(2))
	case "³":
		return p.power(t, v, whole(3))
	case "°":
		return p.apply(token{text: "*", at: t.at}, v, value{new(big.Rat).SetFloat64(math.Pi / 180), true})
	case "root":
		return p.call(token{text: "sqrt", at: t.at}, []value{v})
	case "cube root":
		return p.call(token{text: "cbrt", at: t.at}, []value{v})
	case "parts": // 三分之一
		return p.apply(token{text: "/", at: t.at, said: t.said}, p.expression(postfixPower), v)
	case "!":
		return p.factorial(t, v)
	}
	exponent := p.expression(powerPower) // 2的10次方
	p.expect("power")
	return p.power(t, v, exponent)
}
