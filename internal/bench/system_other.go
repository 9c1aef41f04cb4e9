//go:build !linux

package bench

import (
	"errors"
	"syscall"
	"time"
)

func coresOf(process) []int              { return nil }
func pinProcess([]int) error             { return errors.New("this system cannot bind programs to cores") }
func threadTime() time.Duration          { return 0 }
func onCore(_ int, f func() error) error { return f() }

func smallBuffer(_, _ string, _ syscall.RawConn) error { return nil }
