//go:build unix

package connection

import (
	"syscall"
	"time"
)

// processTime returns the processor time that this process has used.
func processTime() (used time.Duration, known bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
