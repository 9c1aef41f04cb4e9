// Package dsp holds the arithmetic that the resampler, the fades and the echo canceller share. The
// race detector makes its inner loops ten times as slow and has nothing to find in them, for they
// see only what their caller hands in: those marked norace are built without it.
package dsp

import (
	"math"
	"math/bits"
)

// Dot returns the dot product of two slices of one length, a multiple of four.
//
//go:norace
func Dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	return (s0 + s1) + (s2 + s3)
}

// Round returns the sample nearest to v. A value beyond the range of a sample is clipped.
func Round(v float32) int16 {
	return int16(max(math.MinInt16, min(math.MaxInt16, math.Floor(float64(v)+0.5))))
}

// Sinc returns sin(πx)/(πx), and 1 for 0.
func Sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// FFT computes the Fourier transform of real signals of one length. It holds
// tables only, so several goroutines may use it at the same time.
type FFT struct {
	size    int         // samples; a power of two
	reverse []uint16    // the order in which a complex transform of half the size takes its input
	unit    []complex64 // e^(-2πi·k/size), the first half
}

// NewFFT makes the transform of that many samples, a power of two from 8 to 65536.
func NewFFT(size int) *FFT {
	f := &FFT{size: size, reverse: make([]uint16, size/2), unit: make([]complex64, size/2)}
	shift := 17 - bits.Len(uint(size/2)) // 16 bits are turned around, only some are used
	for i := range f.reverse {
		f.reverse[i] = bits.Reverse16(uint16(i)) >> shift
	}
	for k := range f.unit {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / float64(size))
		f.unit[k] = complex(float32(cos), float32(-sin))
	}
	return f
}

// Size returns the number of samples.
func (f *FFT) Size() int { return f.size }

// Bins returns the length of a spectrum: from 0 to half the sample rate.
func (f *FFT) Bins() int { return f.size/2 + 1 }

// Forward writes the spectrum of x, [FFT.Size] samples, to dst, which has [FFT.Bins] values.
//
//go:norace
func (f *FFT) Forward(dst []complex64, x []float32) {
	half := f.size / 2
	z, x := dst[:half], x[:f.size]
	for i, r := range f.reverse { // even samples real, odd ones imaginary
		z[r] = complex(x[2*i], x[2*i+1])
	}
	f.transform(z)
	first := z[0]
	for k := 1; k <= half/2; k++ {
		a, b := z[k], z[half-k]
		even := complex(real(a)+real(b), imag(a)-imag(b))
		odd := complex(imag(a)+imag(b), real(b)-real(a))
		turned := odd * f.unit[k]
		z[k] = complex((real(even)+real(turned))/2, (imag(even)+imag(turned))/2)
		z[half-k] = complex((real(even)-real(turned))/2, (imag(turned)-imag(even))/2)
	}
	dst[0] = complex(real(first)+imag(first), 0)
	dst[half] = complex(real(first)-imag(first), 0)
}

// Inverse writes the samples whose spectrum is src to x. It uses src as scratch.
//
//go:norace
func (f *FFT) Inverse(x []float32, src []complex64) {
	half := f.size / 2
	first, last := real(src[0]), real(src[half])
	z, x := src[:half], x[:f.size]
	// The halves go together again, conjugated: then forward is backward.
	z[0] = complex((first+last)/2, (last-first)/2)
	for k := 1; k <= half/2; k++ {
		a, b := z[k], z[half-k]
		even := complex((real(a)+real(b))/2, (imag(a)-imag(b))/2)
		odd := complex((real(a)-real(b))/2, (imag(a)+imag(b))/2)
		unit := f.unit[k]
		turned := odd * complex(real(unit), -imag(unit))
		re, im := real(even)-imag(turned), imag(even)+real(turned)
		z[half-k] = complex(real(even)+imag(turned), imag(even)-real(turned))
		z[k] = complex(re, -im)
	}
	for i, r := range f.reverse {
		if int(r) > i {
			z[i], z[r] = z[r], z[i]
		}
	}
	f.transform(z)
	scale := 1 / float32(half)
	for i, v := range z {
		x[2*i], x[2*i+1] = real(v)*scale, -imag(v)*scale
	}
}

// transform does a complex transform in place, of values in reversed order.
//
//go:norace
func (f *FFT) transform(z []complex64) {
	n := len(z)
	for i := 0; i+3 < n; i += 4 { // the first two stages only add
		q := z[i : i+4 : i+4]
		a, b, c, d := q[0]+q[1], q[0]-q[1], q[2]+q[3], q[2]-q[3]
		d = complex(imag(d), -real(d))
		q[0], q[1], q[2], q[3] = a+c, b+d, a-c, b-d
	}
	for half := 4; half < n; half *= 2 {
		stride := f.size / (2 * half)
		for start := 0; start < n; start += 2 * half {
			low, high := z[start:start+half], z[start+half:start+2*half]
			at := 0
			for i, v := range high[:len(low)] {
				t := f.unit[at]
				at += stride
				u := low[i]
				re := real(v)*real(t) - imag(v)*imag(t)
				im := real(v)*imag(t) + imag(v)*real(t)
				low[i] = complex(real(u)+re, imag(u)+im)
				high[i] = complex(real(u)-re, imag(u)-im)
			}
		}
	}
}
