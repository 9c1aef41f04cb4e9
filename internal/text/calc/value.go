package calc

import (
	"math"
	"math/big"
	"slices"
	"strings"
)

// How much of a number is shown.
const (
	maxWhole     = 40 // digits before the point
	maxFraction  = 20 // digits of an exact fraction
	roughDigits  = 12 // that count, of a number that is rounded
	hiddenDigits = 15 // from which on a float is not to be trusted
)

// value is a number on the way.
type value struct {
	rat   *big.Rat
	rough bool // it is rounded
}

func whole(n int64) value { return value{rat: new(big.Rat).SetInt64(n)} }

// float is the nearest one.
func (v value) float() float64 {
	f, _ := v.rat.Float64()
	return f
}

// times is the number multiplied by an exact one.
func (v value) times(r *big.Rat) value { return value{new(big.Rat).Mul(v.rat, r), v.rough} }

// result is the number as people read it.
func (v value) result() Result {
	if v.rough {
		v = v.trusted()
	}
	if !v.rough && v.rat.IsInt() {
		if text := v.rat.Num().String(); len(strings.TrimPrefix(text, "-")) <= maxWhole {
			return Result{text, true}
		}
	}
	if places, ok := v.rat.FloatPrec(); ok && !v.rough && places <= maxFraction && v.rat.Num().BitLen()-v.rat.Denom().BitLen() < 130 {
		return Result{v.rat.FloatString(places), true}
	}
	return Result{new(big.Float).SetPrec(200).SetRat(v.rat).Text('g', roughDigits), false}
}

// trusted rounds away what a float cannot know, so that sin(30°) is 0.5.
func (v value) trusted() value {
	f := new(big.Float).SetPrec(200).SetRat(v.rat)
	r, ok := new(big.Rat).SetString(f.Text('g', hiddenDigits))
	if !ok {
		return v
	}
	tiny := new(big.Rat).SetFrac64(1, 1_000_000_000_000_000)
	if new(big.Rat).Abs(r).Cmp(tiny) < 0 {
		r = new(big.Rat)
	}
	return value{r, true}
}

// bounded refuses numbers that grow too large to work with.
func (p *parser) bounded(t token, v value) value {
	if v.rat.Num().BitLen() > maxBits || v.rat.Denom().BitLen() > maxBits {
		return p.failAt(TooLarge, t)
	}
	return v
}

// apply works out an operator between two numbers.
func (p *parser) apply(t token, a, b value) value {
	if p.err != nil {
		return whole(0)
	}
	if b.rat.Sign() == 0 && (t.text == "/" || t.text == "mod") {
		return p.failAt(DivisionByZero, t)
	}
	out := value{new(big.Rat), a.rough || b.rough}
	switch t.text {
	case "+", "and":
		out.rat.Add(a.rat, b.rat)
	case "-":
		out.rat.Sub(a.rat, b.rat)
	case "*", "'s":
		out.rat.Mul(a.rat, b.rat)
	case "%*":
		out.rat.Mul(a.rat, b.rat).Quo(out.rat, big.NewRat(100, 1))
	case "/":
		out.rat.Quo(a.rat, b.rat)
	case "mod":
		quotient := floor(new(big.Rat).Quo(a.rat, b.rat))
		out.rat.Sub(a.rat, quotient.Mul(quotient, b.rat))
	case "^":
		return p.power(t, a, b)
	}
	return p.bounded(t, out)
}

// floor is the greatest whole number that is not above r.
func floor(r *big.Rat) *big.Rat { return new(big.Rat).SetInt(new(big.Int).Div(r.Num(), r.Denom())) }

// power is exact for whole exponents.
func (p *parser) power(t token, base, exponent value) value {
	if p.err != nil {
		return whole(0)
	}
	if !exponent.rat.IsInt() {
		if base.rat.Sign() < 0 {
			return p.failAt(Undefined, t)
		}
		if exponent.rat.Cmp(big.NewRat(1, 2)) == 0 {
			return p.root(t, base)
		}
		return p.rough(t, math.Pow(base.float(), exponent.float()))
	}
	negative := exponent.rat.Sign() < 0
	switch {
	case base.rat.Sign() == 0 && negative:
		return p.failAt(DivisionByZero, t)
	case base.rat.Sign() == 0 && exponent.rat.Sign() == 0:
		return whole(1)
	case base.rat.Sign() == 0:
		return value{new(big.Rat), base.rough || exponent.rough}
	}
	n := new(big.Int).Abs(exponent.rat.Num())
	size := max(base.rat.Num().BitLen(), base.rat.Denom().BitLen())
	if size > 1 && (!n.IsInt64() || n.Int64() > maxBits || n.Int64()*int64(size-1) > maxBits) {
		return p.failAt(TooLarge, t)
	}
	if size <= 1 { // 1 and -1
		n.And(n, big.NewInt(1))
	}
	out := new(big.Rat).SetFrac(new(big.Int).Exp(base.rat.Num(), n, nil), new(big.Int).Exp(base.rat.Denom(), n, nil))
	if negative {
		out.Inv(out)
	}
	return p.bounded(t, value{out, base.rough || exponent.rough})
}

// root is exact for squares, else right to some 60 digits.
func (p *parser) root(t token, v value) value {
	if v.rat.Sign() < 0 {
		return p.failAt(Undefined, t)
	}
	num, den := new(big.Int).Sqrt(v.rat.Num()), new(big.Int).Sqrt(v.rat.Denom())
	exact := new(big.Rat).SetFrac(num, den)
	if new(big.Rat).Mul(exact, exact).Cmp(v.rat) == 0 {
		return value{exact, v.rough}
	}
	f := new(big.Float).SetPrec(200).SetRat(v.rat)
	r, _ := new(big.Float).SetPrec(200).Sqrt(f).Rat(nil)
	return p.bounded(t, value{r, true})
}

// factorial is of whole numbers up to where they grow too large.
func (p *parser) factorial(t token, v value) value {
	if !v.rat.IsInt() || v.rat.Sign() < 0 {
		return p.failAt(Undefined, t)
	}
	n := v.rat.Num()
	if !n.IsInt64() || n.Int64() > 900 {
		return p.failAt(TooLarge, t)
	}
	return p.bounded(t, value{new(big.Rat).SetInt(new(big.Int).MulRange(1, n.Int64())), v.rough})
}

// rough is a number that a float was needed for.
func (p *parser) rough(t token, f float64) value {
	switch {
	case math.IsNaN(f):
		return p.failAt(Undefined, t)
	case math.IsInf(f, 0):
		return p.failAt(TooLarge, t)
	}
	return value{new(big.Rat).SetFloat64(f), true}
}

// constant is a number that has a name.
func constant(name string) (value, bool) {
	switch name {
	case "pi":
		return value{new(big.Rat).SetFloat64(math.Pi), true}, true
	case "whole": // 百分之百
		return whole(1), true
	case "e":
		return value{new(big.Rat).SetFloat64(math.E), true}, true
	}
	return value{}, false
}

func isFunction(name string) bool {
	return slices.Contains([]string{
		"sqrt", "abs", "round", "floor", "ceil", "min", "max", "pow", "sin", "cos", "tan", "ln", "log", "lg", "exp", "cbrt",
	}, name)
}

// call works out a function.
func (p *parser) call(t token, args []value) value {
	if p.err != nil {
		return whole(0)
	}
	v := args[0]
	switch t.text {
	case "min", "max":
		for _, a := range args[1:] {
			if (a.rat.Cmp(v.rat) < 0) == (t.text == "min") {
				v = a
			}
		}
		return v
	case "pow":
		if len(args) != 2 {
			return p.failAt(Syntax, t)
		}
		return p.power(t, v, args[1])
	}
	if len(args) != 1 {
		return p.failAt(Syntax, t)
	}
	switch t.text {
	case "sqrt":
		return p.root(t, v)
	case "abs":
		return value{new(big.Rat).Abs(v.rat), v.rough}
	case "floor":
		return value{floor(v.rat), false}
	case "ceil":
		up := floor(new(big.Rat).Neg(v.rat))
		return value{up.Neg(up), false}
	case "round": // a half goes away from 0
		half := floor(new(big.Rat).Add(new(big.Rat).Abs(v.rat), big.NewRat(1, 2)))
		if v.rat.Sign() < 0 {
			half.Neg(half)
		}
		return value{half, false}
	}
	x := v.float() // of the others only floats are known; angles are in radians, unless they are marked with °
	f := map[string]func(float64) float64{
		"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "exp": math.Exp, "cbrt": math.Cbrt,
		"ln": math.Log, "log": math.Log10, "lg": math.Log10,
	}[t.text]
	if t.text[0] == 'l' && x <= 0 || t.text == "tan" && math.Abs(math.Cos(x)) < 1e-15 { // 90°, as near as a float comes
		return p.failAt(Undefined, t)
	}
	return p.rough(t, f(x))
}
