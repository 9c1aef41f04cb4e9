// Package sherpatest makes, for tests, a small library with the functions of sherpa-onnx that are used here, and
// files that look like models.
package sherpatest

import (
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
)

//go:embed testdata/library.c
var source []byte

// compiled is the library, compiled once for a test program.
var compiled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sherpatest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left of it is the system's to clear
	c, so := filepath.Join(dir, "library.c"), filepath.Join(dir, "library.so")
	if err := os.WriteFile(c, source, 0o600); err != nil {
		return nil, err
	}
	if said, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", so, c, "-lm").CombinedOutput(); err != nil {
		return nil, errors.New(string(said) + err.Error())
	}
	return os.ReadFile(so)
})

// Library is one copy of the library, with counters of its own.
type Library struct {
	File string

	set     func(name string, value int32)
	get     func(name string) int32
	version func(v string)
}

// NewLibrary makes a copy of the library.
func NewLibrary(tb testing.TB) *Library {
	tb.Helper()
	bytes, err := compiled()
	if err != nil {
		tb.Fatal("the test library cannot be made: ", err)
	}
	l := &Library{File: filepath.Join(tb.TempDir(), "libsherpa.so")}
	if err := os.WriteFile(l.File, bytes, 0o700); err != nil {
		tb.Fatal(err)
	}
	so, err := purego.Dlopen(l.File, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		tb.Fatal(err)
	}
	purego.RegisterLibFunc(&l.set, so, "fake_set")
	purego.RegisterLibFunc(&l.get, so, "fake_get")
	purego.RegisterLibFunc(&l.version, so, "fake_version")
	return l
}

// Set sets what the library does: "delay" (milliseconds of each step of a recogniser and of each text that is
// spoken), "load" (milliseconds of loading), "refuse" (models), "mute" (nothing is spoken).
func (l *Library) Set(name string, value int) { l.set(name, int32(value)) }

// Get returns what the library counts: "live" (objects that are not freed), "steps", and "stopped" (texts of which
// nobody wanted more).
func (l *Library) Get(name string) int { return int(l.get(name)) }

// Version sets what the library calls itself.
func (l *Library) Version(v string) { l.version(v) }
