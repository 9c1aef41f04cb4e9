package silero

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
)

// network holds the weights of the model behind the spectrum: four convolutions
// over time, one recurrent cell, one output. It is read-only.
type network struct {
	conv0 [points]matrix // 129 → 128, kernel 3, stride 1, transformed
	bias0 []float32
	conv1 [3]matrix // 128 → 64, kernel 3, stride 2: a matrix for each tap
	bias1 []float32
	conv2 [2]matrix // 64 → 64, taps 1 and 2
	bias2 []float32
	conv3 matrix // 64 → 128, tap 1
	bias3 []float32

	gatesInput, gatesState matrix // 128 → 4 per unit, in PyTorch's order: input, forget, cell, output
	gatesBias              []float32
	silent                 [4 * hidden]float32 // what hear gives for digital silence
	out                    []float32           // 128 → 1
	outBias                float32
}

// state is the memory of the recurrent cell for one stream.
type state struct {
	output [hidden]float32
	cell   [hidden]float32
}

// hear takes the magnitudes of one frame and gives what the gates of the
// recurrent cell get of it.
func (n *network) hear(in *features, gates *[4 * hidden]float32) {
	var first [steps][128]float32
	n.convolve0(in, &first)
	var second [2][64]float32
	n.convolve1(&first, &second)

	var x sparse
	third := [64]float32(n.bias2)
	for tap := range n.conv2 {
		x.gather(&n.conv2[tap], second[tap][:], false)
		n.conv2[tap].product(third[:], &x)
	}
	input := [hidden]float32(n.bias3)
	x.gather(&n.conv3, third[:], false)
	n.conv3.product(input[:], &x)

	*gates = [4 * hidden]float32(n.gatesBias)
	x.gather(&n.gatesInput, input[:], false)
	n.gatesInput.product(gates[:], &x)
}

// convolve1 halves the steps to two.
func (n *network) convolve1(in *[steps][128]float32, out *[2][64]float32) {
	out[0], out[1] = [64]float32(n.bias1), [64]float32(n.bias1)
	var x sparse
	for step := range in {
		x.gather(&n.conv1[0], in[step][:], false)
		if step > 0 {
			n.conv1[step-1].product(out[1][:], &x)
		}
		if step < 2 {
			n.conv1[step+1].product(out[0][:], &x)
		}
	}
}

// recur returns the recurrent cell and the output behind it. It takes what hear gave,
// which it changes, and gives the probability of speech.
func (n *network) recur(gates *[4 * hidden]float32, s *state) float32 {
	var x sparse
	x.gather(&n.gatesState, s.output[:], true)
	n.gatesState.product(gates[:], &x)

	sum := n.outBias
	for i := range hidden {
		g := (*[4]float32)(gates[4*i:])
		c := sigmoid(g[1])*s.cell[i] + sigmoid(g[0])*tanh(g[2])
		h := sigmoid(g[3]) * tanh(c)
		s.cell[i], s.output[i] = c, h
		sum += n.out[i] * max(h, 0)
	}
	return sigmoid(sum)
}

// The first convolution is half of all work: three taps over four steps, with
// silence before and behind. It is computed as a product of polynomials is after
// Toom and Cook: both sides are evaluated at six points, multiplied there, and
// the four results are put together again. That takes six multiplications in
// place of ten for each pair of channels.

// points are 0, 1, -1, 2, -2 and infinity.
const points = 6

// evaluate takes the taps of the kernels, [out][in][tap], to the points.
func evaluate(kernels []float32, rows int) [points]matrix {
	var at [points][]float32
	for i := 0; i < len(kernels); i += 3 {
		a, b, c := float64(kernels[i]), float64(kernels[i+1]), float64(kernels[i+2])
		for p, v := range [points]float64{
			a / 4, -(a + b + c) / 6, -(a - b + c) / 6, (a + 2*b + 4*c) / 24, (a - 2*b + 4*c) / 24, c,
		} {
			at[p] = append(at[p], float32(v))
		}
	}
	var all [points]matrix
	for p := range all {
		all[p] = newMatrix(at[p], rows)
	}
	return all
}

// convolve0 writes the results without their ReLU, which sparse.gather does.
func (n *network) convolve0(in *features, out *[steps][128]float32) {
	var at [points][bins]float32
	for i := range in {
		x0, x1, x2, x3 := in[i][0], in[i][1], in[i][2], in[i][3]
		at[0][i] = x3 - 5*x1
		at[1][i] = (x2 + x3) - 4*(x0+x1)
		at[2][i] = (x3 - x2) + 4*(x0-x1)
		at[3][i] = (x3 - x1) + 2*(x2-x0)
		at[4][i] = (x3 - x1) - 2*(x2-x0)
		at[5][i] = 4*x0 - 5*x2
	}
	var sums [points][128]float32
	var x sparse
	for p := range sums {
		x.gather(&n.conv0[p], at[p][:], true)
		n.conv0[p].product(sums[p][:], &x)
	}
	for i, b := range n.bias0[:128] {
		m0, m1, m2, m3, m4, m5 := sums[0][i], sums[1][i], sums[2][i], sums[3][i], sums[4][i], sums[5][i]
		out[0][i] = b + m0 + (m1 + m2) + (m3 + m4)
		out[1][i] = b + (m1 - m2) + 2*(m3-m4)
		out[2][i] = b + (m1 + m2) + 4*(m3+m4)
		out[3][i] = b + (m1 - m2) + 8*(m3-m4) + m5
	}
}

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

// embedded is written by the program in the folder extract, which also tells
// the order of the tensors.
//
//go:embed weights.f32
var embedded []byte

const embeddedFloats = 128*129*3 + 128 + 64*128*3 + 64 + 64*64*3 + 64 + 128*64*3 + 128 +
	2*512*128 + 2*512 + 128 + 1

// reader takes float32 tensors off the front of a byte slice.
type reader struct{ rest []byte }

func (r *reader) take(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.rest[4*i:]))
	}
	r.rest = r.rest[4*n:]
	return out
}

// unpack reads the tensors and lays each out in the order in which the network
// walks through it.
func unpack(data []byte) (*network, error) {
	if len(data) != 4*embeddedFloats {
		return nil, fmt.Errorf("the weights file holds %d bytes, want %d", len(data), 4*embeddedFloats)
	}
	r := &reader{rest: data}
	n := &network{}
	n.conv0, n.bias0 = evaluate(r.take(128*bins*3), 128), r.take(128)
	conv1 := r.take(64 * 128 * 3)
	n.conv1, n.bias1 = [3]matrix{tap(conv1, 0, 64), tap(conv1, 1, 64), tap(conv1, 2, 64)}, r.take(64)
	// Only one step of time is left after the second stride, so the outer taps
	// of the last two convolutions meet nothing but padding.
	conv2 := r.take(64 * 64 * 3)
	n.conv2, n.bias2 = [2]matrix{tap(conv2, 1, 64), tap(conv2, 2, 64)}, r.take(64)
	n.conv3, n.bias3 = tap(r.take(128*64*3), 1, 128), r.take(128)
	n.gatesInput = newMatrix(byUnit(r.take(512*hidden)), 512)
	n.gatesState = newMatrix(byUnit(r.take(512*hidden)), 512)
	n.gatesBias = byUnit(r.take(512))
	for i, b := range byUnit(r.take(512)) { // the format has a bias of each of the two
		n.gatesBias[i] += b
	}
	n.out = r.take(hidden)
	n.outBias = r.take(1)[0]
	n.hear(&features{}, &n.silent)
	return n, nil
}

// tap takes one tap of kernels of three.
func tap(kernels []float32, which, rows int) matrix {
	one := make([]float32, 0, len(kernels)/3)
	for i := which; i < len(kernels); i += 3 {
		one = append(one, kernels[i])
	}
	return newMatrix(one, rows)
}

// byUnit takes rows that are sorted by gate and puts the four rows of each unit
// side by side.
func byUnit(rows []float32) []float32 {
	width := len(rows) / (4 * hidden)
	out := make([]float32, 0, len(rows))
	for unit := range hidden {
		for gate := range 4 {
			out = append(out, rows[(gate*hidden+unit)*width:][:width]...)
		}
	}
	return out
}
