package silero

// matrix is laid out column after column.
type matrix struct {
	weights []float32
	rows    int
}

// newMatrix lays out a matrix that is given row after row.
func newMatrix(rowwise []float32, rows int) matrix {
	m := matrix{weights: make([]float32, len(rowwise)), rows: rows}
	cols := len(rowwise) / rows
	for i := range m.weights {
		m.weights[i] = rowwise[i%rows*cols+i/rows]
	}
	return m
}

// maxColumns is the width of the widest matrix, a multiple of four.
const maxColumns = 2 * hidden

// sparse is a vector without its zeros. Behind a ReLU most of a vector is zero,
// and the columns of zeros need not be read.
type sparse struct {
	n     int             // entries in use; a multiple of four, filled up with zeros
	start [maxColumns]int // of the column, in matrix.weights
	value [maxColumns]float32
}

// gather takes from x what is positive, or with signed what is not zero, to be
// multiplied by m.
func (s *sparse) gather(m *matrix, x []float32, signed bool) {
	n, start := 0, 0
	for _, v := range x {
		at := n & (maxColumns - 1) // it is below anyway: x is no wider than m
		s.start[at], s.value[at] = start, v
		if v > 0 || signed && v < 0 {
			n++
		}
		start += m.rows
	}
	for ; n%4 != 0; n++ {
		s.start[n&(maxColumns-1)], s.value[n&(maxColumns-1)] = 0, 0
	}
	s.n = n
}

// plainProduct is dst += m·x. Four columns at a time are added to all rows: the
// four values stay in registers, no sum waits for another, and the weights are
// read once and in order.
func (m *matrix) plainProduct(dst []float32, x *sparse) {
	for c := 0; c+4 <= x.n; c += 4 {
		start, v := (*[4]int)(x.start[c:]), (*[4]float32)(x.value[c:])
		k0 := m.weights[start[0]:][:len(dst)]
		k1 := m.weights[start[1]:][:len(dst)]
		k2 := m.weights[start[2]:][:len(dst)]
		k3 := m.weights[start[3]:][:len(dst)]
		v0, v1, v2, v3 := v[0], v[1], v[2], v[3]
		for i := range dst {
			dst[i] += (k0[i]*v0 + k1[i]*v1) + (k2[i]*v2 + k3[i]*v3)
		}
	}
}
