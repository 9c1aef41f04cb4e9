package silero

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
)

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
	n := &network{
		conv0: r.take(128 * bins * 3), bias0: r.take(128),
		conv1: r.take(64 * 128 * 3), bias1: r.take(64),
	}
	// Only one step of time is left after the second stride, so the outer taps
	// of the last two convolutions meet nothing but padding.
	n.conv2, n.bias2 = interleave(taps(r.take(64*64*3), 1, 2), 64, 128), r.take(64)
	n.conv3, n.bias3 = interleave(taps(r.take(128*64*3), 1), 128, 64), r.take(128)
	n.gates, n.gatesBias = gates(r.take(512*hidden), r.take(512*hidden), r.take(512), r.take(512))
	n.out = r.take(hidden)
	n.outBias = r.take(1)[0]
	return n, nil
}

// taps keeps, of kernels of three, the taps named, side by side.
func taps(kernels []float32, keep ...int) []float32 {
	out := make([]float32, 0, len(kernels)/3*len(keep))
	for i := 0; i < len(kernels); i += 3 {
		for _, k := range keep {
			out = append(out, kernels[i+k])
		}
	}
	return out
}

// interleave turns a rows×cols matrix into groups of four rows, in each of
// which the four values of a column stand together, as product4 reads them.
func interleave(m []float32, rows, cols int) []float32 {
	out := make([]float32, 0, len(m))
	for r := 0; r < rows; r += 4 {
		for c := range cols {
			for k := range 4 {
				out = append(out, m[(r+k)*cols+c])
			}
		}
	}
	return out
}

// gates joins the recurrent cell's two matrices into one that takes input and
// state in a row, with the four gates of a unit as four neighbouring rows.
func gates(input, state, inputBias, stateBias []float32) (matrix, bias []float32) {
	matrix = make([]float32, 0, len(input)+len(state))
	for unit := range hidden {
		for gate := range 4 {
			row := gate*hidden + unit
			matrix = append(matrix, input[row*hidden:][:hidden]...)
			matrix = append(matrix, state[row*hidden:][:hidden]...)
			bias = append(bias, inputBias[row]+stateBias[row])
		}
	}
	return interleave(matrix, 4*hidden, 2*hidden), bias
}
