package silero

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
