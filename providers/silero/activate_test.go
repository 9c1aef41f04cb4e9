package silero

import (
	"math"
	"testing"
)

func TestActivationsAgreeWithMath(t *testing.T) {
	var worst, relative float64
	for i := -200000; i <= 200000; i++ {
		x := float32(i) * 0.0005
		exact := 1 / (1 + math.Exp(-float64(x)))
		worst = max(worst, math.Abs(float64(sigmoid(x))-exact), math.Abs(float64(tanh(x))-math.Tanh(float64(x))))
		if math.Abs(float64(x)) < 80 {
			relative = max(relative, math.Abs(float64(exp(x))/math.Exp(float64(x))-1))
		}
	}
	t.Logf("the activations are off by at most %.2g, the exponential by %.2g of its value", worst, relative)
	if !(worst <= 4e-7) || !(relative <= 3e-7) {
		t.Errorf("the activations are off by %g, the exponential by %g of its value", worst, relative)
	}
}

func TestActivationsAtTheEnds(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, tt := range []struct{ x, sigmoid, tanh float32 }{
		{0, 0.5, 0}, {1000, 1, 1}, {-1000, 0, -1}, {inf, 1, 1}, {-inf, 0, -1},
	} {
		if s, h := sigmoid(tt.x), tanh(tt.x); math.Abs(float64(s-tt.sigmoid)) > 1e-7 || math.Abs(float64(h-tt.tanh)) > 1e-7 {
			t.Errorf("at %v: sigmoid %v, tanh %v", tt.x, s, h)
		}
	}
}
