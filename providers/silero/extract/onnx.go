package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Field numbers of onnx.proto3 (github.com/onnx/onnx), as far as they are needed.
const (
	modelGraph       = 7
	graphNode        = 1
	nodeOpType       = 4
	nodeAttribute    = 5
	attributeName    = 1
	attributeTensor  = 5
	attributeGraph   = 6
	tensorDims       = 1
	tensorDataType   = 2
	tensorName       = 8
	tensorRawData    = 9
	dataTypeFloat    = 1
	branchOf16kHz    = "then_branch"
	operatorIf       = "If"
	operatorConstant = "Constant"
)

// tensor is a named float32 constant.
type tensor struct {
	dims   []int
	values []float32
}

// constants16k collects the named float32 constants of the branch that the
// model takes for 16 kHz: the then_branch of the If in its outermost graph.
func constants16k(model []byte) (map[string]tensor, error) {
	graph, err := message(model, modelGraph)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	nodes, err := messages(graph, graphNode)
	if err != nil {
		return nil, fmt.Errorf("read graph: %w", err)
	}
	for _, node := range nodes {
		op, err := message(node, nodeOpType)
		if err != nil {
			return nil, fmt.Errorf("read node: %w", err)
		}
		if string(op) != operatorIf {
			continue
		}
		branch, err := attribute(node, branchOf16kHz, attributeGraph)
		if err != nil {
			return nil, err
		}
		return constants(branch)
	}
	return nil, errors.New("the model's graph holds no If")
}

// attribute finds a node's attribute and gives the part of it with that number.
func attribute(node []byte, name string, part int) ([]byte, error) {
	attributes, err := messages(node, nodeAttribute)
	if err != nil {
		return nil, fmt.Errorf("read node: %w", err)
	}
	for _, a := range attributes {
		if n, err := message(a, attributeName); err != nil {
			return nil, fmt.Errorf("read attribute: %w", err)
		} else if string(n) == name {
			return message(a, part)
		}
	}
	return nil, fmt.Errorf("a node holds no attribute %s", name)
}

// constants collects the named float32 constants of a graph.
func constants(graph []byte) (map[string]tensor, error) {
	nodes, err := messages(graph, graphNode)
	if err != nil {
		return nil, fmt.Errorf("read branch: %w", err)
	}
	out := make(map[string]tensor)
	for _, node := range nodes {
		op, err := message(node, nodeOpType)
		if err != nil {
			return nil, fmt.Errorf("read node: %w", err)
		}
		if string(op) != operatorConstant {
			continue
		}
		raw, err := attribute(node, "value", attributeTensor)
		if err != nil {
			return nil, err
		}
		name, t, err := readTensor(raw)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		if name != "" && t.values != nil {
			out[name] = t
		}
	}
	return out, nil
}

// readTensor reads a tensor; its values stay nil if they are not float32.
func readTensor(raw []byte) (string, tensor, error) {
	all, err := fields(raw)
	if err != nil {
		return "", tensor{}, err
	}
	var (
		name     string
		t        tensor
		dataType uint64
		data     []byte
	)
	for _, f := range all {
		switch f.number {
		case tensorDims: // packed or one by one
			if f.bytes == nil {
				t.dims = append(t.dims, int(f.value))
			}
			for rest := f.bytes; len(rest) > 0; {
				d, n := binary.Uvarint(rest)
				if n <= 0 {
					return name, t, errTruncated
				}
				t.dims = append(t.dims, int(d))
				rest = rest[n:]
			}
		case tensorDataType:
			dataType = f.value
		case tensorName:
			name = string(f.bytes)
		case tensorRawData:
			data = f.bytes
		}
	}
	if dataType != dataTypeFloat {
		return name, t, nil
	}
	t.values = make([]float32, len(data)/4)
	for i := range t.values {
		t.values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return name, t, nil
}
