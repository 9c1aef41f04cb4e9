// Command extract takes the weights of the 16 kHz branch out of Silero's ONNX
// file and writes the file that providers/silero embeds:
//
//	go run ./providers/silero/extract silero_vad_v6.onnx providers/silero/weights.f32
//
// The ONNX file must be the one known by its SHA-256; where it comes from is
// told in providers/silero/README.md. The output is float32, little-endian, as in
// that file: the tensors of layout one after the other with nothing between them.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// knownSHA256 is Silero VAD v6 with both of its sample rates.
const knownSHA256 = "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"

// layout lists the tensors in the order of the output: where the values of each
// begin in the known file, in bytes, and how many there are.
var layout = []struct{ at, floats int }{
	{1280249, 128 * 129 * 3}, // encoder.0.reparam_conv.weight
	{1478516, 128},           // encoder.0.reparam_conv.bias
	{1479163, 64 * 128 * 3},  // encoder.1.reparam_conv.weight
	{1577589, 64},            // encoder.1.reparam_conv.bias
	{1577979, 64 * 64 * 3},   // encoder.2.reparam_conv.weight
	{1627253, 64},            // encoder.2.reparam_conv.bias
	{1627644, 128 * 64 * 3},  // encoder.3.reparam_conv.weight
	{1726071, 128},           // encoder.3.reparam_conv.bias
	{1726701, 512 * 128},     // decoder.rnn.weight_ih
	{1988963, 512 * 128},     // decoder.rnn.weight_hh
	{2251214, 512},           // decoder.rnn.bias_ih
	{2253369, 512},           // decoder.rnn.bias_hh
	{2255538, 128},           // decoder.decoder.2.weight
	{2256158, 1},             // decoder.decoder.2.bias
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
	var weights []byte
	for _, tensor := range layout {
		weights = append(weights, model[tensor.at:][:4*tensor.floats]...)
	}
	return os.WriteFile(outputPath, weights, 0o644)
}
