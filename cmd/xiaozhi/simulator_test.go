package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSimulatorMissing checks that talk and bench say in both languages what is missing.
func TestSimulatorMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, command := range []string{"talk", "bench"} {
		code, out, errs := runMain(t, command, "--help")
		if code != 1 || out != "" {
			t.Errorf("%s: exit %d, %q", command, code, out)
		}
		inOrder(t, errs, "xiaozhi "+command, "xiaozhi-sim not found", "找不到 xiaozhi-sim", "make build", "放在 xiaozhi 旁边")
	}
}

// TestSimulatorInPath checks that a program in PATH is found if none lies beside this one.
func TestSimulatorInPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	want := filepath.Join(dir, "xiaozhi-sim")
	if err := os.WriteFile(want, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := findSimulator(); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
