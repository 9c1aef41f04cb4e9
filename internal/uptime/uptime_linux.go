package uptime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock returns a clock that nobody sets and that goes on while the machine sleeps.
func Clock() func() time.Duration {
	return func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // it cannot fail: this clock is older than what Go runs on
		return time.Duration(t.Nano())
	}
}
