package calc

import (
	"math"
	"math/big"
)

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
		if b.rat.Sign() == 0 {
			return p.failAt(DivisionByZero, t)
		}
		out.rat.Quo(a.rat, b.rat)
	case "mod":
		if b.rat.Sign() == 0 {
			return p.failAt(DivisionByZero, t)
		}
		quotient := floor(new(big.Rat).Quo(a.rat, b.rat))
		out.rat.Sub(a.rat, quotient.Mul(quotient, b.rat))
	case "^":
		return p.power(t, a, b)
	}
	return p.bounded(t, out)
}

// floor is the greatest whole number that is not above r.
func floor(r *big.Rat) *big.Rat {
	n, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	_ = m // Euclidean: never negative, for a denominator never is
	return new(big.Rat).SetInt(n)
}

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

func (v value) float() float64 {
	f, _ := v.rat.Float64()
	return f
}
