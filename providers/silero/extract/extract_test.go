package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

// Writers of the few protobuf forms that the tests need.

func varintField(number int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), v)
}

func bytesField(number int, parts ...[]byte) []byte {
	content := bytes.Join(parts, nil)
	b := binary.AppendUvarint(nil, uint64(number)<<3|2)
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(b, content...)
}

func floatTensor(name string, dims []int, values ...float32) []byte {
	var packed, raw []byte
	for _, d := range dims {
		packed = binary.AppendUvarint(packed, uint64(d))
	}
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return bytes.Join([][]byte{
		bytesField(tensorDims, packed), varintField(tensorDataType, dataTypeFloat),
		bytesField(tensorName, []byte(name)), bytesField(tensorRawData, raw),
	}, nil)
}

func constantNode(tensor []byte) []byte {
	return bytesField(graphNode, bytesField(nodeOpType, []byte(operatorConstant)),
		bytesField(nodeAttribute, bytesField(attributeName, []byte("value")), bytesField(attributeTensor, tensor)))
}

func modelWith(branch string, nodes ...[]byte) []byte {
	ifNode := bytesField(graphNode, bytesField(nodeOpType, []byte(operatorIf)),
		bytesField(nodeAttribute, bytesField(attributeName, []byte("else_branch")),
			bytesField(attributeGraph, constantNode(floatTensor("w", []int{1}, 99)))),
		bytesField(nodeAttribute, bytesField(attributeName, []byte(branch)), bytesField(attributeGraph, nodes...)))
	return append(varintField(1, 8), bytesField(modelGraph, ifNode)...)
}

func TestConstants16k(t *testing.T) {
	integers := bytes.Join([][]byte{varintField(tensorDataType, 7), bytesField(tensorName, []byte("n"))}, nil)
	got, err := constants16k(modelWith(branchOf16kHz,
		constantNode(floatTensor("w", []int{2, 1}, 1.5, -2)),
		constantNode(integers),
		bytesField(graphNode, bytesField(nodeOpType, []byte("Relu"))),
		constantNode(floatTensor("b", []int{1}, 0.25)),
	))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !slices.Equal(got["w"].values, []float32{1.5, -2}) ||
		!slices.Equal(got["w"].dims, []int{2, 1}) || !slices.Equal(got["b"].values, []float32{0.25}) {
		t.Errorf("got %v", got)
	}
}

func TestConstants16kRefuses(t *testing.T) {
	good := modelWith(branchOf16kHz, constantNode(floatTensor("w", []int{1}, 1)))
	for name, model := range map[string][]byte{
		"nothing":         nil,
		"no If":           bytesField(modelGraph, constantNode(floatTensor("w", []int{1}, 1))),
		"no such branch":  modelWith("other_branch"),
		"cut off":         good[:len(good)-3],
		"length too long": {modelGraph<<3 | 2, 0xff, 0xff, 0x7f},
		"bad wire type":   {modelGraph<<3 | 3},
	} {
		if got, err := constants16k(model); err == nil {
			t.Errorf("%s: got %v and no error", name, got)
		}
	}
}

func TestPackChecksShapes(t *testing.T) {
	tensors := make(map[string]tensor)
	total := 0
	for _, e := range layout() {
		size := 1
		for _, d := range e.dims {
			size *= d
		}
		total += size
		tensors[e.name] = tensor{e.dims, make([]float32, size)}
	}
	if b, err := pack(tensors); err != nil || len(b) != 4*total {
		t.Fatalf("%d bytes, %v; want %d", len(b), err, 4*total)
	}
	const name = "decoder.rnn.bias_hh"
	tensors[name] = tensor{[]int{256}, make([]float32, 256)}
	if _, err := pack(tensors); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("wrong shape: %v", err)
	}
	delete(tensors, name)
	if _, err := pack(tensors); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("missing tensor: %v", err)
	}
}

func TestCheckBasis(t *testing.T) {
	basis := tensor{values: make([]float32, 258*256)}
	for k := range 129 {
		for n := range 256 {
			hann := 0.5 - 0.5*math.Cos(2*math.Pi*float64(n)/256)
			sin, cos := math.Sincos(2 * math.Pi * float64(k*n%256) / 256)
			basis.values[k*256+n] = float32(hann * cos)
			basis.values[(129+k)*256+n] = float32(-hann * sin)
		}
	}
	if err := checkBasis(basis); err != nil {
		t.Error(err)
	}
	basis.values[200*256+3] += 0.001
	if err := checkBasis(basis); err == nil {
		t.Error("a changed basis passed")
	}
	if err := checkBasis(tensor{}); err == nil {
		t.Error("a missing basis passed")
	}
}

func TestRunRefusesUnknownFile(t *testing.T) {
	if err := run("main.go", t.TempDir()+"/out"); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("got %v", err)
	}
}

func FuzzConstants16k(f *testing.F) {
	f.Add(modelWith(branchOf16kHz, constantNode(floatTensor("w", []int{2, 1}, 1.5, -2))))
	f.Add([]byte{0x3a, 0x05, 0x0a, 0x03, 0x22, 0x01, 0x49})
	f.Fuzz(func(_ *testing.T, model []byte) {
		_, _ = constants16k(model) // whatever comes, no panic
	})
}
