package silero

import "math"

// The exponential of the activations is computed in float32, exact to 2e-7 of
// its value: math.Exp is exact to the last bit of a float64, which costs twice
// the time and is rounded away.

func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

func tanh(x float32) float32 { return 2/(1+exp(-2*x)) - 1 }

// exp is e^x; beyond ±80 it stays at its value there, where every activation
// has long reached its end.
func exp(x float32) float32 {
	const (
		// Added to a small number, it leaves no room for a fraction: the number
		// is rounded, and stands in the lowest bits.
		rounder = 3 << 22
		ln2High = 0x1.62e4p-1 // so short that its multiples are exact
		ln2Low  = math.Ln2 - ln2High
	)
	if x > 80 {
		x = 80
	}
	if x < -80 {
		x = -80
	}
	t := float32(x*math.Log2E) + rounder
	k := t - rounder
	r := float32(x-k*ln2High) - k*ln2Low // e^x = 2^k · e^r, and |r| is at most half of ln 2
	r2 := r * r
	p := (1 + r) + r2*((1./2+r*(1./6))+r2*((1./24+r*(1./120))+r2*(1./720)))
	return p * math.Float32frombits((math.Float32bits(t)+127)<<23)
}
