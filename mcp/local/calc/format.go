package calc

import (
	"math/big"
	"strings"
)

// How much of a number is shown.
const (
	maxWhole     = 40 // digits before the point
	maxFraction  = 20 // digits of an exact fraction
	roughDigits  = 12 // that count, of a number that is rounded
	hiddenDigits = 15 // from which on a float is not to be trusted
)

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
	return Result{shorten(v.rat), false}
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

// shorten is the number in roughDigits.
func shorten(r *big.Rat) string {
	f := new(big.Float).SetPrec(200).SetRat(r)
	text := f.Text('g', roughDigits)
	mantissa, exponent, has := strings.Cut(text, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if has {
		return mantissa + "e" + exponent
	}
	return mantissa
}
