package silero

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
