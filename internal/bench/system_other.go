//go:build !linux

package bench

import (
	"errors"
	"syscall"
	"time"
)

var errNoPinning = errors.New("this system cannot bind programs to cores")

func allowed() []int                     { return nil }
func pinThread(int) error                { return errNoPinning }
func coresOf(process) []int              { return nil }
func pinProcess([]int) error             { return errNoPinning }
func threadTime() time.Duration          { return 0 }
func onCore(_ int, f func() error) error { return f() }

func smallBuffer(_, _ string, _ syscall.RawConn) error { return nil }
