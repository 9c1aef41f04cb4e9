package external

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// How a program is ended: its input is closed, it is asked, it is killed.
const (
	exitGrace = 5 * time.Second // after its input is closed
	termGrace = 2 * time.Second // after SIGTERM
	pipeGrace = time.Second     // for what is still in its pipes after its end
)

// process is a program that we started, in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File      // our end
	stdout *os.File      // our end
	stderr *os.File      // our end
	over   chan struct{} // closed when it has ended
	logged chan struct{} // closed when its standard error was read to the end
	gone   chan struct{} // closed by end: its output is not read any more
	once   sync.Once
	wg     sync.WaitGroup
}

// launch starts a program. wrote gets the lines of its standard error; nil: nobody does. Whoever calls it ends it with end.
func launch(c Config, ours []string, log *slog.Logger, m mask, wrote func(line string)) (*process, error) {
	p := &process{over: make(chan struct{}), logged: make(chan struct{}), gone: make(chan struct{})}
	environ := environment(ours, c.Env)
	p.cmd = exec.Command(program(c.Command, environ), c.Args...) //nolint:noctx // end ends it, in three steps
	p.cmd.Env, p.cmd.Dir = environ, c.Dir
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(p.cmd.SysProcAttr)
	var theirs [3]*os.File
	var failed [3]error
	theirs[0], p.stdin, failed[0] = os.Pipe()
	p.stdout, theirs[1], failed[1] = os.Pipe()
	p.stderr, theirs[2], failed[2] = os.Pipe()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err := errors.Join(failed[:]...)
	if err == nil {
		err = p.start()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, fmt.Errorf("start %s: %w", c.Command, err)
	}
	p.wg.Go(func() {
		defer close(p.logged)
		copyLog(p.stderr, log, m, wrote)
	})
	return p, nil
}

// start runs the program and waits for it in a goroutine of its own, whose thread lives
// as long as the program: to the system the thread is its parent, and it ends with that.
func (p *process) start() error {
	started := make(chan error, 1)
	p.wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.await()
		}
	})
	return <-started
}

// await notes the program's end and sweeps up what it left behind: children
// that kept its group would keep its pipes open.
func (p *process) await() {
	_ = p.cmd.Wait() // how it ended is in its state
	_ = p.signal(syscall.SIGKILL)
	close(p.over)
	grace := time.After(pipeGrace)
	select { // children outside the group may keep the pipes; they are not waited for
	case <-grace:
	case <-p.gone:
		select {
		case <-grace:
		case <-p.logged:
		}
	}
	p.closePipes()
}

// signal goes to the whole group.
func (p *process) signal(s syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, s) }

func (p *process) closePipes() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} { // nil if there is none; then Close does nothing
		_ = f.Close()
	}
}

// end makes the program end, by force if it must, and waits for it. It may be
// called many times.
func (p *process) end() {
	_ = p.stdin.Close()
	for _, step := range []struct {
		grace  time.Duration
		signal syscall.Signal
	}{{exitGrace, syscall.SIGTERM}, {termGrace, syscall.SIGKILL}} {
		select {
		case <-p.over:
		case <-time.After(step.grace):
			_ = p.signal(step.signal)
		}
	}
	<-p.over
	p.once.Do(func() { close(p.gone) })
	p.wg.Wait()
}

// inherited reports whether a variable of ours goes to the programs we start.
// Everything else stays here: it may be a secret.
func inherited(name string) bool {
	return strings.HasPrefix(name, "LC_") || slices.Contains([]string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM",
		"TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_CACHE",
	}, strings.ToUpper(name))
}

// environment returns the environment of a program: the inherited part of ours, and above it
// what its config says.
func environment(ours []string, own map[string]string) []string {
	var out []string
	for _, variable := range ours {
		name, _, ok := strings.Cut(variable, "=")
		if _, set := own[name]; ok && !set && inherited(name) {
			out = append(out, variable)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		out = append(out, name+"="+own[name])
	}
	return out
}

// program finds a command in the PATH of the environment that it will get.
// A name with a slash, and one that is not found, stay as they are.
func program(command string, environ []string) string {
	if strings.ContainsRune(command, filepath.Separator) {
		return command
	}
	for _, variable := range environ {
		path, ok := strings.CutPrefix(variable, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, command)
			if info, err := os.Stat(file); dir != "" && err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return file
			}
		}
	}
	return command
}
