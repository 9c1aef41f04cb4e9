package echo

import (
	"math"

	"xiaozhi/audio/internal/dsp"
)

// Rate is the rate in Hz of the sound that a [SelfEcho] compares. What a voice is
// known by lies below 2 kHz.
const Rate = 4000

// coarse appends pcm (16 kHz, a multiple of four samples) at [Rate] to dst.
func coarse(dst, pcm []int16) []int16 {
	for ; len(pcm) >= 4; pcm = pcm[4:] {
		dst = append(dst, int16((int(pcm[0])+int(pcm[1])+int(pcm[2])+int(pcm[3]))/4))
	}
	return dst
}

// similarity returns how much of heard is a sound of played that came back, 0 to
// 1: the normalized cross-correlation at the delay where it is largest. Both are
// at [Rate] and end at the same time; played begins earlier by the longest delay
// to be tried. The similarity is 0 if it does not, or if one of them is silent.
func similarity(heard, played []int16) float64 {
	delays := len(played) - len(heard)
	if delays < 0 || len(heard) == 0 {
		return 0
	}
	size := 8
	for size < len(played)+len(heard) {
		size *= 2
	}
	f := dsp.NewFFT(min(size, 1<<16))
	if f.Size() < size {
		return 0
	}
	h, p := emphasized(heard, size), emphasized(played, size)
	spectrum, other := make([]complex64, f.Bins()), make([]complex64, f.Bins())
	energy := 0.0
	for _, v := range h[:len(heard)] {
		energy += float64(v) * float64(v)
	}
	under := 0.0 // energy of what was played in the time that is compared
	for _, v := range p[:len(heard)] {
		under += float64(v) * float64(v)
	}
	f.Forward(spectrum, h)
	f.Forward(other, p)
	for k, v := range spectrum {
		other[k] *= complex(real(v), -imag(v))
	}
	match := h
	f.Inverse(match, other)
	most := 0.0
	for d := range delays + 1 {
		if energy > 0 && under > 0 {
			most = max(most, math.Abs(float64(match[d]))/math.Sqrt(energy*under))
		}
		if d < delays {
			under += float64(p[d+len(heard)])*float64(p[d+len(heard)]) - float64(p[d])*float64(p[d])
		}
	}
	return min(most, 1)
}

// emphasized returns pcm with its low tones softened, which are alike in all
// voices, and silence up to size.
func emphasized(pcm []int16, size int) []float32 {
	out := make([]float32, size)
	last := float32(0)
	for i, s := range pcm {
		out[i] = float32(s) - 0.7*last
		last = float32(s)
	}
	return out
}
