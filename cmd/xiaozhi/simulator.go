package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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
	fmt.Fprintf(stderr, "xiaozhi %s: %v\n"+
		"it is a program of its own, %[3]s: put it beside xiaozhi or into PATH (make build builds both)\n"+
		"这个命令由 %[3]s 执行：请把它放在 xiaozhi 旁边或 PATH 中（make build 会同时构建）\n", command, err, simulatorName)
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
		err = fmt.Errorf("%s not found / 找不到 %[1]s", simulatorName)
	}
	return path, err
}
