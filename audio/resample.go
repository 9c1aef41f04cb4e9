package audio

import (
	"fmt"
	"math"
	"slices"

	"xiaozhi/audio/internal/dsp"
)

// The filter's shape, in parts of the lower of the two Nyquist frequencies: flat
// up to passEdge, silent from stopEdge on, by a Kaiser window for 90 dB.
const (
	passEdge    = 0.86
	stopEdge    = 1.02
	attenuation = 90.0 // dB

	resampleBlock = 1024 // input samples worked on at a time
)

// Resampler changes the rate of a mono stream by a windowed sinc, cut into one
// short filter per phase. It is for one goroutine. Making one costs about a
// millisecond; keep it and begin anew with Reset or Flush.
type Resampler struct {
	up, down int         // output samples per input samples, in lowest terms
	taps     int         // length of each phase's filter, even
	phases   [][]float32 // nil: both rates are the same

	buf   []float32 // input not yet done with; room for taps and a block
	start int       // where in buf the next output's filter begins
	phase int       // which filter it takes
}

// NewResampler makes a resampler between two of the rates 8000, 11025, 12000,
// 16000, 22050, 24000, 32000, 44100 and 48000 Hz. Equal rates pass through.
func NewResampler(from, to int) (*Resampler, error) {
	rates := []int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}
	if !slices.Contains(rates, from) || !slices.Contains(rates, to) {
		return nil, fmt.Errorf("resample from %d to %d Hz: want two of %v", from, to, rates)
	}
	if from == to {
		return &Resampler{}, nil
	}
	g := from // the greatest common divisor
	for rest := to; rest != 0; {
		g, rest = rest, g%rest
	}
	r := &Resampler{up: to / g, down: from / g}
	r.design(float64(min(from, to)) / float64(from))
	r.buf = make([]float32, 0, r.taps+resampleBlock)
	r.Reset()
	return r, nil
}

// design computes the filters. band is the lower Nyquist frequency in parts of the input's.
func (r *Resampler) design(band float64) {
	// Kaiser's formulas for the length and the shape of the window.
	width := math.Pi * band * (stopEdge - passEdge) // radians per input sample
	half := int(math.Ceil((attenuation - 8) / (2.285 * width) / 2))
	r.taps = 2 * half
	r.taps += -r.taps & 3 // dot takes four at a time
	half = r.taps / 2
	beta := 0.1102 * (attenuation - 8.7)
	cutoff := band * (passEdge + stopEdge) / 2

	coefficients := make([]float32, r.up*r.taps)
	row := make([]float64, r.taps)
	for p := range r.up {
		sum := 0.0
		for j := range row {
			x := float64(p)/float64(r.up) + float64(half-1-j)
			edge := x / float64(half)
			row[j] = dsp.Sinc(cutoff*x) * bessel0(beta*math.Sqrt(max(0, 1-edge*edge)))
			sum += row[j]
		}
		filter := coefficients[p*r.taps:][:r.taps]
		for j, v := range row {
			filter[j] = float32(v / sum) // a constant comes out as it was
		}
		r.phases = append(r.phases, filter)
	}
}

// Write appends to dst what src adds to the output; nothing is allocated while dst has
// capacity. How a stream is cut into calls does not change its output. The last few
// milliseconds wait for more input, or for Flush.
func (r *Resampler) Write(dst, src []int16) []int16 {
	if r.phases == nil {
		return append(dst, src...)
	}
	for len(src) > 0 {
		had := len(r.buf)
		n := min(len(src), cap(r.buf)-had)
		r.buf = r.buf[:had+n]
		added := r.buf[had:]
		for i, v := range src[:n] {
			added[i] = float32(v)
		}
		src = src[n:]
		dst = r.run(dst)
	}
	return dst
}

// Flush appends the end of the stream, so that all of it is as long as the
// input was, and begins a new stream.
func (r *Resampler) Flush(dst []int16) []int16 {
	if r.phases == nil {
		return dst
	}
	var silence [resampleBlock]int16
	dst = r.Write(dst, silence[:r.taps/2])
	r.Reset()
	return dst
}

// Reset forgets what was heard and begins a new stream.
func (r *Resampler) Reset() {
	if r.phases == nil {
		return
	}
	// The first output sample is the first input sample, with silence before it.
	r.buf = r.buf[:r.taps/2-1]
	clear(r.buf)
	r.start, r.phase = 0, 0
}

// run computes all output that the buffer is enough for.
func (r *Resampler) run(dst []int16) []int16 {
	buf, start, phase := r.buf, r.start, r.phase // in registers
	for up, down, taps, phases := r.up, r.down, r.taps, r.phases; start+taps <= len(buf); {
		dst = append(dst, dsp.Round(dsp.Dot(buf[start:][:taps], phases[phase])))
		for phase += down; phase >= up; phase -= up {
			start++
		}
	}
	kept := copy(buf, buf[start:])
	r.buf, r.start, r.phase = buf[:kept], 0, phase
	return dst
}

// bessel0 returns the modified Bessel function of the first kind, order 0.
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-12*sum; k++ {
		term *= x * x / (4 * k * k)
		sum += term
	}
	return sum
}
