//go:build !linux

package speak

import (
	"errors"
	"time"
)

// kernelTimer is only of Linux.
type kernelTimer struct{}

func newKernelTimer(func()) (*kernelTimer, error) {
	return nil, errors.ErrUnsupported
}

// Reset does nothing.
func (*kernelTimer) Reset(time.Duration) bool { return false }

// Close does nothing.
func (*kernelTimer) Close() {}
