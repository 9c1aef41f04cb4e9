package silero

import "math"

// network is the model behind the spectrum: four convolutions over time, one
// recurrent cell, one output. It is read-only.
type network struct {
	conv0, bias0     []float32 // 129 → 128, kernel 3, stride 1: [out][in][tap]
	conv1, bias1     []float32 // 128 → 64, kernel 3, stride 2: [out][in][tap]
	conv2, bias2     []float32 // 64 → 64, taps 1 and 2: for product4
	conv3, bias3     []float32 // 64 → 128, tap 1: for product4
	gates, gatesBias []float32 // 128+128 → 4 per unit: for product4
	out              []float32 // 128 → 1
	outBias          float32
}

// state is what the recurrent cell remembers of one stream.
type state struct {
	output [hidden]float32
	cell   [hidden]float32
}

// run takes the magnitudes of one frame and gives the probability of speech.
// The gates of a unit stand in PyTorch's order: input, forget, cell, output.
func (n *network) run(in *features, s *state) float32 {
	var first [128][steps]float32
	n.convolve0(in, &first)
	var second [128]float32 // 64 channels, two steps each
	n.convolve1(&first, &second)
	var third [64]float32
	product4(third[:], n.conv2, n.bias2, second[:])
	relu(third[:])
	var input [2 * hidden]float32
	product4(input[:hidden], n.conv3, n.bias3, third[:])
	relu(input[:hidden])

	copy(input[hidden:], s.output[:])
	var gates [4 * hidden]float32
	product4(gates[:], n.gates, n.gatesBias, input[:])
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

// convolve0 keeps the four steps in registers while it walks the 129 bins, and
// has one accumulator per product so that no addition waits for another.
func (n *network) convolve0(in *features, out *[128][steps]float32) {
	weights := n.conv0
	for o := range out {
		w := weights[:3*bins]
		weights = weights[3*bins:]
		var a00, a01, a10, a11, a12, a21, a22, a23, a32, a33 float32
		for i := range in {
			k := (*[3]float32)(w[3*i:])
			x := &in[i]
			x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
			a00 += k[1] * x0
			a01 += k[2] * x1
			a10 += k[0] * x0
			a11 += k[1] * x1
			a12 += k[2] * x2
			a21 += k[0] * x1
			a22 += k[1] * x2
			a23 += k[2] * x3
			a32 += k[0] * x2
			a33 += k[1] * x3
		}
		b := n.bias0[o]
		y := &out[o]
		y[0] = max(b+a00+a01, 0)
		y[1] = max(b+a10+a11+a12, 0)
		y[2] = max(b+a21+a22+a23, 0)
		y[3] = max(b+a32+a33, 0)
	}
}

// convolve1 halves the steps to two. Its result stands channel by channel.
func (n *network) convolve1(in *[128][steps]float32, out *[128]float32) {
	weights := n.conv1
	for o := range len(out) / 2 {
		w := weights[:3*128]
		weights = weights[3*128:]
		var a00, a01, a11, a12, a13 float32
		for i := range in {
			k := (*[3]float32)(w[3*i:])
			x := &in[i]
			a00 += k[1] * x[0]
			a01 += k[2] * x[1]
			a11 += k[0] * x[1]
			a12 += k[1] * x[2]
			a13 += k[2] * x[3]
		}
		b := n.bias1[o]
		out[2*o] = max(b+a00+a01, 0)
		out[2*o+1] = max(b+a11+a12+a13, 0)
	}
}

// product4 is dst = m·x + bias for a matrix laid out by interleave: four rows
// at a time, two accumulators each, every weight read once and in order.
// The length of x must be even, that of dst a multiple of four.
func product4(dst, m, bias, x []float32) {
	for r := 0; r+4 <= len(dst); r += 4 {
		w := m[:4*len(x)]
		m = m[4*len(x):]
		var a0, a1, a2, a3, b0, b1, b2, b3 float32
		for i := 0; i+2 <= len(x); i += 2 {
			k := (*[8]float32)(w[4*i:])
			u, v := x[i], x[i+1]
			a0 += k[0] * u
			a1 += k[1] * u
			a2 += k[2] * u
			a3 += k[3] * u
			b0 += k[4] * v
			b1 += k[5] * v
			b2 += k[6] * v
			b3 += k[7] * v
		}
		d, b := (*[4]float32)(dst[r:]), (*[4]float32)(bias[r:])
		d[0], d[1], d[2], d[3] = b[0]+a0+b0, b[1]+a1+b1, b[2]+a2+b2, b[3]+a3+b3
	}
}

func relu(x []float32) {
	for i, v := range x {
		x[i] = max(v, 0)
	}
}

func sigmoid(x float32) float32 {
	return float32(1 / (1 + math.Exp(-float64(x))))
}

func tanh(x float32) float32 {
	return float32(2/(1+math.Exp(-2*float64(x))) - 1)
}
