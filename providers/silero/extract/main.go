// Command extract takes the weights of the 16 kHz branch out of Silero's ONNX
// file and writes the file that providers/silero embeds:
//
//	go run ./providers/silero/extract silero_vad_v6.onnx providers/silero/weights.f32
//
// The ONNX file must be the one known by its SHA-256; where it comes from is
// told in providers/silero/README.md. The output is float32, little-endian,
// the tensors of layout one after the other with nothing between them.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"slices"
)

// knownSHA256 is Silero VAD v6 with both of its sample rates.
const knownSHA256 = "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"

// basisName is the tensor that is checked instead of written: it is a Hann
// window times sines and cosines, for which the package has an FFT.
const basisName = "stft.forward_basis_buffer"

type entry struct {
	name string
	dims []int
}

// layout returns the order of the tensors in the output.
func layout() []entry {
	return []entry{
		{"encoder.0.reparam_conv.weight", []int{128, 129, 3}},
		{"encoder.0.reparam_conv.bias", []int{128}},
		{"encoder.1.reparam_conv.weight", []int{64, 128, 3}},
		{"encoder.1.reparam_conv.bias", []int{64}},
		{"encoder.2.reparam_conv.weight", []int{64, 64, 3}},
		{"encoder.2.reparam_conv.bias", []int{64}},
		{"encoder.3.reparam_conv.weight", []int{128, 64, 3}},
		{"encoder.3.reparam_conv.bias", []int{128}},
		{"decoder.rnn.weight_ih", []int{512, 128}},
		{"decoder.rnn.weight_hh", []int{512, 128}},
		{"decoder.rnn.bias_ih", []int{512}},
		{"decoder.rnn.bias_hh", []int{512}},
		{"decoder.decoder.2.weight", []int{1, 128, 1}},
		{"decoder.decoder.2.bias", []int{1}},
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: extract MODEL.onnx OUTPUT.f32")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

func run(modelPath, outputPath string) error {
	model, err := os.ReadFile(modelPath)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(model)
	if got := hex.EncodeToString(sum[:]); got != knownSHA256 {
		return fmt.Errorf("%s has the SHA-256 %s, want %s", modelPath, got, knownSHA256)
	}
	tensors, err := constants16k(model)
	if err != nil {
		return fmt.Errorf("%s: %w", modelPath, err)
	}
	if err := checkBasis(tensors[basisName]); err != nil {
		return fmt.Errorf("%s: %w", modelPath, err)
	}
	weights, err := pack(tensors)
	if err != nil {
		return fmt.Errorf("%s: %w", modelPath, err)
	}
	return os.WriteFile(outputPath, weights, 0o644)
}

// pack puts the tensors of layout one after the other.
func pack(tensors map[string]tensor) ([]byte, error) {
	var out bytes.Buffer
	for _, e := range layout() {
		t, ok := tensors[e.name]
		if !ok {
			return nil, fmt.Errorf("tensor %s is missing", e.name)
		}
		size := 1
		for _, d := range e.dims {
			size *= d
		}
		if !slices.Equal(t.dims, e.dims) || len(t.values) != size {
			return nil, fmt.Errorf("tensor %s has the shape %v with %d values, want %v", e.name, t.dims, len(t.values), e.dims)
		}
		for _, v := range t.values {
			out.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
	}
	return out.Bytes(), nil
}

// checkBasis makes sure that the first layer is what the package computes by
// an FFT: 129 rows of real parts, 129 of imaginary parts, 256 samples each,
// under a periodic Hann window.
func checkBasis(t tensor) error {
	const rows, size, tolerance = 129, 256, 1e-6
	if len(t.values) != 2*rows*size {
		return fmt.Errorf("tensor %s has %d values, want %d", basisName, len(t.values), 2*rows*size)
	}
	for k := range rows {
		for n := range size {
			hann := 0.5 - 0.5*math.Cos(2*math.Pi*float64(n)/size)
			sin, cos := math.Sincos(2 * math.Pi * float64(k*n%size) / size)
			real, imag := float64(t.values[k*size+n]), float64(t.values[(rows+k)*size+n])
			if math.Abs(real-hann*cos) > tolerance || math.Abs(imag+hann*sin) > tolerance {
				return fmt.Errorf("tensor %s is not a Hann-windowed Fourier basis at row %d, sample %d", basisName, k, n)
			}
		}
	}
	return nil
}
