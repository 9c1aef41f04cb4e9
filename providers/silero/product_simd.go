//go:build goexperiment.simd && amd64 && !go1.27

package silero

// Go 1.26 has vectors as an experiment, which the Makefile switches on. Without
// it, on another Go or another processor, the plain product does the same.

import "simd/archsimd"

// lanes is the number of rows that stay in registers: eight vectors of eight, so that no
// sum waits for the one before it.
const lanes = 64

// product is dst += m·x, for a multiple of lanes rows.
func (m *matrix) product(dst []float32, x *sparse) {
	if !archsimd.X86.AVX2() || !archsimd.X86.FMA() || len(dst)%lanes != 0 {
		m.plainProduct(dst, x)
		return
	}
	for row := 0; row < len(dst); row += lanes {
		m.lanes((*[lanes]float32)(dst[row:]), row, x)
	}
	archsimd.ClearAVXUpperBits() // other code would be slow after vectors this wide
}

// lanes is product for the rows from row on.
func (m *matrix) lanes(dst *[lanes]float32, row int, x *sparse) {
	s0, s1, s2, s3 := load(dst, 0), load(dst, 1), load(dst, 2), load(dst, 3)
	s4, s5, s6, s7 := load(dst, 4), load(dst, 5), load(dst, 6), load(dst, 7)
	starts := x.start[:x.n]
	values := x.value[:len(starts)]
	for i, start := range starts {
		k := (*[lanes]float32)(m.weights[start+row:])
		v := archsimd.BroadcastFloat32x8(values[i])
		s0, s1, s2, s3 = load(k, 0).MulAdd(v, s0), load(k, 1).MulAdd(v, s1), load(k, 2).MulAdd(v, s2), load(k, 3).MulAdd(v, s3)
		s4, s5, s6, s7 = load(k, 4).MulAdd(v, s4), load(k, 5).MulAdd(v, s5), load(k, 6).MulAdd(v, s6), load(k, 7).MulAdd(v, s7)
	}
	for i, s := range [8]archsimd.Float32x8{s0, s1, s2, s3, s4, s5, s6, s7} {
		s.Store((*[8]float32)(dst[8*i:]))
	}
}

func load(x *[lanes]float32, i int) archsimd.Float32x8 {
	return archsimd.LoadFloat32x8((*[8]float32)(x[8*i:]))
}
