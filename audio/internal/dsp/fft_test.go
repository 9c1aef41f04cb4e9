package dsp

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// slowSpectrum is the definition of the transform.
func slowSpectrum(x []float32) []complex128 {
	out := make([]complex128, len(x)/2+1)
	for k := range out {
		for i, v := range x {
			sin, cos := math.Sincos(2 * math.Pi * float64(k*i%len(x)) / float64(len(x)))
			out[k] += complex(float64(v)*cos, -float64(v)*sin)
		}
	}
	return out
}

func randomSignal(n int) []float32 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestFFTDefinition(t *testing.T) {
	for size := 8; size <= 2048; size *= 2 {
		f, x := NewFFT(size), randomSignal(size)
		got := make([]complex64, f.Bins())
		f.Forward(got, x)
		for k, want := range slowSpectrum(x) {
			if off := cmplx.Abs(complex128(got[k]) - want); off > 1e-4*math.Sqrt(float64(size)) {
				t.Fatalf("size %d, bin %d: %v, want %v", size, k, got[k], want)
			}
		}
	}
}

func TestFFTInverse(t *testing.T) {
	for size := 8; size <= 65536; size *= 2 {
		f, x := NewFFT(size), randomSignal(size)
		spectrum, back := make([]complex64, f.Bins()), make([]float32, size)
		f.Forward(spectrum, x)
		f.Inverse(back, spectrum)
		for i := range x {
			if off := math.Abs(float64(back[i] - x[i])); off > 1e-4 {
				t.Fatalf("size %d, sample %d: %v, want %v", size, i, back[i], x[i])
			}
		}
	}
}

func BenchmarkFFT512(b *testing.B) {
	f, x := NewFFT(512), randomSignal(512)
	dst := make([]complex64, f.Bins())
	b.ReportAllocs()
	for b.Loop() {
		f.Forward(dst, x)
	}
}
