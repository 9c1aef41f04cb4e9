package speak

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimer calls a function when its time has come, by a timer of Linux (timerfd_create(2)). Go's own timers are up to a
// millisecond late on a machine that sleeps until they are due, since Go waits for whole milliseconds, and up to ten while
// garbage is collected, as what collects in idle time looks for sockets that are ready, but not for timers that are due.
type kernelTimer struct {
	file *os.File
	raw  syscall.RawConn
	over sync.WaitGroup
}

// newKernelTimer makes a timer that calls f each time on a goroutine of its own, as [time.AfterFunc] does, until Close.
func newKernelTimer(f func()) (*kernelTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	t := &kernelTimer{file: os.NewFile(uintptr(fd), "timerfd")}
	if t.raw, err = t.file.SyscallConn(); err != nil {
		t.file.Close()
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	t.over.Go(func() {
		var expirations [8]byte // how often it was due since the last reading, which says nothing here
		for {
			if _, err := t.file.Read(expirations[:]); err != nil {
				return
			}
			t.over.Go(f)
		}
	})
	return t, nil
}

// Reset has f called once in that time, and not at the time that was set before.
func (t *kernelTimer) Reset(in time.Duration) bool {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(in, 1)))} // 0 would stop it
	_ = t.raw.Control(func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), 0, &at, nil) })
	return true
}

// Close waits for the calls of f that run. There are none afterwards.
func (t *kernelTimer) Close() {
	t.file.Close()
	t.over.Wait()
}
