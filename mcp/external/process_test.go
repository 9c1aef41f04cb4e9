package external

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xiaozhi/mcp"
)

// played is a server that the test binary plays, as a program of its own.
func played(t *testing.T, role string, e Entry, log *slog.Logger) *Server {
	t.Helper()
	e.Command = os.Args[0]
	if e.Env == nil {
		e.Env = map[string]Text{}
	}
	e.Env[playVariable] = Text(role)
	s := NewServer("played", config(t, e), ServerOptions{Log: log, Environ: append(os.Environ(), "OPENAI_API_KEY=sk-not-yours")})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// until waits for something that comes soon, in real time.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit.C:
			t.Fatalf("%s did not come in 30 s", what)
		case <-tick.C:
		}
	}
}

// ask calls a tool of a program and wants text.
func ask(t *testing.T, s *Server, tool string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := s.CallTool(ctx, tool, nil)
	text, ok := got.(string)
	if err != nil || !ok {
		t.Fatalf("%s: %v, %v", tool, got, err)
	}
	return text
}

func askPid(t *testing.T, s *Server, tool string) int {
	t.Helper()
	pid, err := strconv.Atoi(ask(t, s, tool))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// alive reports whether a process runs; one that is dead but not yet waited for
// does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// TestProgram: what it inherits, where it runs, and that its noise costs nothing.
func TestProgram(t *testing.T) {
	var log record
	dir := t.TempDir()
	s := played(t, "chatty", Entry{Cwd: dir, Env: map[string]Text{"SECRET": "hush-hush", "LANG": "xx"}}, log.logger())
	until(t, "the list", s.IsReady)
	environ := ask(t, s, "environment")
	for _, want := range []string{"SECRET=hush-hush", "LANG=xx", "PATH="} {
		if !strings.Contains(environ, want) {
			t.Errorf("the program lacks %s", want)
		}
	}
	if strings.Contains(environ, "sk-not-yours") || strings.Contains(environ, "LANG=C") {
		t.Errorf("the program inherited too much:\n%s", environ)
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || ask(t, s, "folder") != real {
		t.Errorf("folder %s, want %s", ask(t, s, "folder"), dir)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	log.has(t, "line 0 with ***", "lines_left_out=170", "mcp message dropped")
	if strings.Contains(log.String(), "hush-hush") {
		t.Error("the log shows a secret")
	}
	for line := range strings.Lines(log.String()) {
		if len(line) > 2*maxLogLine {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// TestKilledInMidCall: kill -9 fails the call at once and clearly; the program is
// started again.
func TestKilledInMidCall(t *testing.T) {
	var log record
	s := played(t, "plain", Entry{}, log.logger())
	until(t, "the list", s.IsReady)
	pid, child := askPid(t, s, "pid"), askPid(t, s, "child")
	failed := make(chan error, 1)
	go func() {
		_, err := s.CallTool(t.Context(), "slow", nil)
		failed <- err
	}()
	until(t, "the call", func() bool {
		s.calls.mu.Lock()
		defer s.calls.mu.Unlock()
		return len(s.calls.running) == 1
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, mcp.ErrClosed) || !strings.Contains(err.Error(), "mcp server played has left") {
		t.Errorf("the call: %v", err)
	}
	until(t, "the end of what it left behind", func() bool { return !alive(child) })
	until(t, "the loss", func() bool { return strings.Contains(log.String(), "mcp server is away") })
	until(t, "the next program", func() bool { return s.HasTool("pid") })
	if again := askPid(t, s, "pid"); again == pid {
		t.Error("it is the same program")
	}
	log.has(t, "mcp server is away", "killed")
}

// TestNothingIsLeft: after Stop there is neither the program nor what it
// started, however stubborn they are, and no goroutine or open file of ours.
func TestNothingIsLeft(t *testing.T) {
	files, routines := openFiles(t), runtime.NumGoroutine()
	for _, role := range []string{"plain", "stubborn"} {
		s := played(t, role, Entry{}, nil)
		until(t, "the list", s.IsReady)
		pid, child := askPid(t, s, "pid"), askPid(t, s, "child")
		if group, err := syscall.Getpgid(pid); err != nil || group != pid || group == syscall.Getpgrp() {
			t.Errorf("group %d of program %d", group, pid)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if alive(pid) || syscall.Kill(pid, 0) == nil {
			t.Errorf("%s: the program lives", role)
		}
		until(t, "the end of its child", func() bool { return !alive(child) })
	}
	until(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= routines })
	if n := openFiles(t); n > files {
		t.Errorf("%d open files, %d before", n, files)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc on this system")
	}
	return len(list)
}

// TestProgramThatCannotStart says why.
func TestProgramThatCannotStart(t *testing.T) {
	var log record
	missing := NewServer("missing", config(t, Entry{Command: "no-such-program-here"}), ServerOptions{Log: log.logger()})
	crash := played(t, "crash", Entry{}, log.logger())
	if err := missing.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the reason", func() bool {
		return strings.Contains(log.String(), "no-such-program-here") && strings.Contains(log.String(), "exit status 3")
	})
	until(t, "the state", func() bool { return missing.Status().Phase == Waiting && crash.Status().Phase == Waiting })
	if now := missing.Status(); now.Trouble != Unreachable || now.Where != "no-such-program-here" || !strings.Contains(now.Error, "not found") {
		t.Errorf("missing: %+v", now)
	}
	if now := crash.Status(); now.Trouble != Exited || len(now.Lines) == 0 || now.Lines[0] != "cannot find the module" || !strings.Contains(now.Error, "exit status 3") {
		t.Errorf("crash: %+v", now)
	}
	for _, s := range []*Server{missing, crash} {
		if s.IsReady() || len(s.GetAvailableTools()) > 0 {
			t.Error("ready")
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	log.has(t, "mcp server stderr", "cannot find the module", "mcp server is away")
}

// TestProgramInItsOwnPath is found where its config says.
func TestProgramInItsOwnPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tool")
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"tool": file, "./tool": "./tool", "none": "none"} {
		if got := program(command, []string{"A=b", "PATH=/nowhere::" + dir}); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

// A program does not outlive a server that is killed: nobody would end it.
func TestProgramEndsWithServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can")
	}
	host := exec.CommandContext(t.Context(), os.Args[0])
	host.Env = append(os.Environ(), playVariable+"=host")
	out, err := host.Output()
	if err == nil {
		t.Fatal("the server was not killed")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the program", func() bool { return !alive(pid) })
}
