package silero

import (
	"math"
	"math/bits"
)

const (
	fftSize = 256         // samples under one Hann window
	fftHop  = 128         // samples from one window to the next
	fftHalf = fftSize / 2 // a real transform of 256 is a complex one of 128
	bins    = fftHalf + 1
	steps   = 4 // transforms per frame
)

type (
	window   [contextSamples + frameSamples + 64]float32 // with the mirrored tail
	features [bins][steps]float32                        // magnitudes; the four steps of a bin stand together
)

// spectrum is a short-time Fourier transform with its tables. It is read-only.
type spectrum struct {
	hann    [fftSize]float32
	reverse [fftHalf]uint8
	twiddle [fftHalf / 2]complex64 // of the complex transform
	split   [bins]complex64        // takes the real transform's two halves apart
}

func newSpectrum() *spectrum {
	s := &spectrum{}
	for i := range s.hann {
		s.hann[i] = float32(0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/fftSize))
	}
	for i := range s.reverse {
		s.reverse[i] = bits.Reverse8(uint8(i)) >> 1 // 7 bits
	}
	for i := range s.twiddle {
		s.twiddle[i] = unit(i, fftHalf)
	}
	for i := range s.split {
		s.split[i] = unit(i, fftSize)
	}
	return s
}

// unit is e^(-2πi·k/n).
func unit(k, n int) complex64 {
	sin, cos := math.Sincos(2 * math.Pi * float64(k) / float64(n))
	return complex(float32(cos), float32(-sin))
}

// magnitudes transforms the four overlapping windows of w.
func (s *spectrum) magnitudes(w *window, out *features) {
	var z [fftHalf]complex64
	for step := range steps {
		x := (*[fftSize]float32)(w[step*fftHop:])
		for i, r := range s.reverse { // even samples real, odd ones imaginary
			z[r&(fftHalf-1)] = complex(x[2*i]*s.hann[2*i], x[2*i+1]*s.hann[2*i+1])
		}
		s.transform(&z)
		for k := range bins {
			a, b := z[k&(fftHalf-1)], z[(fftHalf-k)&(fftHalf-1)]
			even := complex(real(a)+real(b), imag(a)-imag(b))
			odd := complex(imag(a)+imag(b), real(b)-real(a)) * s.split[k]
			re, im := real(even)+real(odd), imag(even)+imag(odd)
			out[k][step] = 0.5 * float32(math.Sqrt(float64(re*re+im*im)))
		}
	}
}

// transform does a radix-2 transform in place of values in bit-reversed order.
func (s *spectrum) transform(z *[fftHalf]complex64) {
	for i := 0; i < fftHalf; i += 2 { // the first stage multiplies by one
		a, b := z[i], z[i+1]
		z[i], z[i+1] = a+b, a-b
	}
	for half := 2; half < fftHalf; half *= 2 {
		stride := fftHalf / (2 * half)
		for start := 0; start < fftHalf; start += 2 * half {
			low, high := z[start:start+half], z[start+half:start+2*half]
			for i := range low {
				t := s.twiddle[(i*stride)&(fftHalf/2-1)]
				v := high[i]
				re := real(v)*real(t) - imag(v)*imag(t)
				im := real(v)*imag(t) + imag(v)*real(t)
				u := low[i]
				low[i] = complex(real(u)+re, imag(u)+im)
				high[i] = complex(real(u)-re, imag(u)-im)
			}
		}
	}
}
