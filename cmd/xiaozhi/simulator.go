package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// simulatorName is the file name of the simulator's program.
const simulatorName = "xiaozhi-sim"

// simulate replaces this process by the simulator, so that arguments, output,
// signals and exit code are the simulator's own. It returns, with exit code 1,
// only if the simulator cannot be started.
func simulate(command string, args []string, stderr io.Writer) int {
	program, err := findSimulator()
	if err == nil {
		err = syscall.Exec(program, append([]string{program, command}, args...), os.Environ())
	}
	fmt.Fprintf(stderr, "xiaozhi %s: %v\n%s\n%s\n", command, err,
		message.In(text.English, "sim/where", simulatorName), message.In(text.Chinese, "sim/where", simulatorName))
	return 1
}

// findSimulator returns the path of the simulator: beside this program, else in PATH.
func findSimulator() (string, error) {
	if own, err := os.Executable(); err == nil {
		beside, err := exec.LookPath(filepath.Join(filepath.Dir(own), simulatorName))
		if err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(simulatorName)
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New(message.Both("sim/not-found", simulatorName))
	}
	return path, err
}
