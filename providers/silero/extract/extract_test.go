package main

import (
	"os"
	"strings"
	"testing"
)

func TestRunRefusesUnknownFile(t *testing.T) {
	if err := run("main.go", t.TempDir()+"/out"); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("got %v", err)
	}
}

func TestLayoutFillsWeights(t *testing.T) {
	embedded, err := os.Stat("../weights.f32")
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, tensor := range layout {
		size += 4 * tensor.floats
	}
	if int64(size) != embedded.Size() {
		t.Errorf("the tensors have %d bytes, weights.f32 has %d", size, embedded.Size())
	}
}
