// Command wirediff compares what two builds of the server say on the wire.
//
//	go run ./internal/wirediff OLD NEW [flags of go test, such as -run TestWire/music]
//
// The comparison itself is [TestWire] of this package: this program runs it with
// the two binaries.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: wirediff OLD NEW [flags of go test]")
		os.Exit(1)
	}
	old, err1 := filepath.Abs(os.Args[1])
	fresh, err2 := filepath.Abs(os.Args[2])
	test := []string{"test", "xiaozhi/internal/wirediff", "-run", "^TestWire$", "-count", "1", "-parallel", "5", "-timeout", "1h"}
	cmd := exec.CommandContext(context.Background(), "go", slices.Concat(test, os.Args[3:], []string{"-old", old, "-new", fresh})...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmp.Or(err1, err2, cmd.Run()); err != nil {
		fmt.Fprintln(os.Stderr, "wirediff:", err)
		os.Exit(1)
	}
}
