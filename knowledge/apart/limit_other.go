//go:build !linux

package apart

import (
	"os/exec"
	"runtime/metrics"
	"syscall"
	"time"
)

// limit has the process give way to others. What the system refuses it does without.
func limit() {
	const last = 19 // of the priorities
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, last)
}

// limitCPU does nothing: the clock alone limits the process.
func limitCPU(time.Duration) {}

// resident returns how much memory Go has of the system, in bytes.
func resident() int {
	all := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(all)
	return int(all[0].Value.Uint64())
}

// killed reports whether a process was ended by a signal.
func killed(e *exec.ExitError) bool {
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
