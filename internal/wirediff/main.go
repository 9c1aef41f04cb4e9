// Command wirediff compares what two builds of the server say on the wire.
//
//	go run ./internal/wirediff OLD NEW [flags of go test, such as -run TestWire/music]
//
// The comparison itself is [TestWire] of this package: this program runs it with
// the two binaries.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wirediff:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: wirediff OLD NEW [flags of go test]")
	}
	var binaries [2]string
	for i := range binaries {
		path, err := filepath.Abs(args[i])
		if err != nil {
			return err
		}
		binaries[i] = path
	}
	test := []string{"test", "xiaozhi/internal/wirediff", "-run", "^TestWire$", "-count", "1", "-parallel", "5", "-timeout", "1h"}
	test = append(append(test, args[2:]...), "-old", binaries[0], "-new", binaries[1])
	cmd := exec.CommandContext(ctx, "go", test...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
