package apart

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limit has the process give way to others, be the first to end when memory is short, and use no more than it may. What the
// system refuses it does without.
func limit() {
	const last = 19 // of the priorities
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, last)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	for resource, most := range map[int]uint64{
		unix.RLIMIT_AS: maxSpace, unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 32, unix.RLIMIT_FSIZE: 64 << 20,
	} {
		_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most})
	}
}

// limitCPU ends the process when it has used so much more time of processors. The system tells it so, and ends it if it goes on.
func limitCPU(most time.Duration) {
	const more = 5 // seconds until the system ends it
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGXCPU)
	go func() { // ends with the process
		<-told
		os.Exit(exitSlow)
	}()
	seconds := max(1, uint64(used.Utime.Sec+used.Stime.Sec)+uint64(most.Seconds()))
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds + more})
}

// resident returns how much memory the process has, in bytes; 0: it cannot be told.
func resident() int {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// killed reports whether a process was ended by the system, which does so where memory is short.
func killed(e *exec.ExitError) bool {
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
