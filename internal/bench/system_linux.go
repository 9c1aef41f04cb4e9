package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// coresOf are the cores that a process may run on; 0: this one.
func coresOf(pid process) []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(int(pid), &set) != nil {
		return nil
	}
	var out []int
	for i := 0; len(out) < set.Count(); i++ {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
}

// pinProcess puts all threads of this process on these cores, and those that they will start.
func pinProcess(cores []int) error {
	var set unix.CPUSet
	for _, c := range cores {
		set.Set(c)
	}
	done := make(map[int]bool)
	for fresh := true; fresh; { // threads may start meanwhile
		fresh = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("pin thread %d: %w", id, err)
			}
			done[id], fresh = true, true
		}
	}
	return nil
}

// onCore runs f on a thread of its own, which is bound to that core: a process that
// it starts is there from its first instruction. Below 0: any core.
func onCore(core int, f func() error) error {
	out := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its core
		if core >= 0 {
			var set unix.CPUSet
			set.Set(core)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				out <- fmt.Errorf("pin to core %d: %w", core, err)
				return
			}
		}
		out <- f()
	}()
	return <-out
}

func threadTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// smallBuffer gives a socket as little room for what comes in as devices have,
// before it connects: what has been offered once is not taken back.
func smallBuffer(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
	})
	return errors.Join(err, failed)
}
