// Package calc works out expressions: + - * / % ^ ! and parentheses, decimals,
// percentages and some functions, written with signs or in words of Chinese and
// English. Rational results are exact. It is pure and bounded in time and space
// whatever it is given. All functions may be called at the same time.
package calc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of an expression and of the numbers in it.
const (
	maxText  = 1000 // bytes
	maxDepth = 64   // of parentheses, signs and powers
	maxBits  = 8192 // of a numerator or denominator
)

// Cause says what is wrong with an expression.
type Cause string

// The causes.
const (
	Syntax         Cause = "syntax"
	DivisionByZero Cause = "division by zero"
	TooLarge       Cause = "too large"
	Undefined      Cause = "undefined" // the square root of -1
)

// Error is a mistake in an expression, with its place.
type Error struct {
	Cause Cause
	At    int    // the sign at which it was found, from 1
	Near  string // what stands there, "" for the end
}

// Error is in words for a log.
func (e *Error) Error() string {
	near := e.Near
	if near == "" {
		near = "the end"
	}
	return fmt.Sprintf("%s at sign %d, near %s", e.Cause, e.At, near)
}

// Result is the value of an expression.
type Result struct {
	Text  string // in plain digits, or like 1.5e+30 when it is very large or very small
	Exact bool   // Text is all of it
}

// Eval works an expression out. The error is an *Error.
func Eval(text string) (Result, error) {
	if len(text) > maxText {
		return Result{}, &Error{Cause: TooLarge, At: maxText}
	}
	text, before := normal(text)
	p := &parser{lexer: lexer{text: text, words: columns(wordsFile)}, before: before}
	p.next()
	v := p.expression(0)
	if p.err == nil && p.token.kind != end {
		p.fail(Syntax)
	}
	if p.err != nil {
		return Result{}, p.err
	}
	return v.result(), nil
}

// normal drops what people say around an expression, and tells how many signs
// stood before it.
func normal(text string) (expression string, before int) {
	text = strings.ToLower(text)
	text = strings.NewReplacer("（", "(", "）", ")", "，", ",", "．", ".", "＋", "+", "－", "-", "＊", "*", "／", "/", "＾", "^", "％", "%", "！", "!", "　", " ", "？", "?", "＝", "=").Replace(text)
	text = strings.TrimRight(text, " ?。")
	signs := utf8.RuneCountInString(text)
	text = strings.TrimLeft(text, " ")
	for _, head := range []string{"请问", "计算一下", "计算", "算一下", "what is", "what's"} {
		text = strings.TrimPrefix(text, head)
	}
	before = signs - utf8.RuneCountInString(text)
	for _, tail := range []string{"等于多少", "等于几", "等于", "是多少", "是几", "equals", "="} {
		if rest, ok := strings.CutSuffix(text, tail); ok {
			return strings.TrimRight(rest, " "), before
		}
	}
	return text, before
}
