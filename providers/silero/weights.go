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
