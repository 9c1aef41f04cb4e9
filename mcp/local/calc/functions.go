package calc

import (
	"math"
	"math/big"
	"slices"
)

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

// degree is one degree in radians.
func (p *parser) degree() value {
	return value{new(big.Rat).SetFloat64(math.Pi / 180), true}
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
	return p.transcendental(t, v.float())
}

// transcendental are the functions of which only floats are known. Angles are
// in radians, unless they are marked with °.
func (p *parser) transcendental(t token, x float64) value {
	switch t.text {
	case "sin":
		return p.rough(t, math.Sin(x))
	case "cos":
		return p.rough(t, math.Cos(x))
	case "tan":
		if math.Abs(math.Cos(x)) < 1e-15 { // 90°, as near as a float comes
			return p.failAt(Undefined, t)
		}
		return p.rough(t, math.Tan(x))
	case "exp":
		return p.rough(t, math.Exp(x))
	case "cbrt":
		return p.rough(t, math.Cbrt(x))
	}
	if x <= 0 {
		return p.failAt(Undefined, t)
	}
	if t.text == "log" || t.text == "lg" {
		return p.rough(t, math.Log10(x))
	}
	return p.rough(t, math.Log(x))
}
