//go:build !linux

package uptime

import "time"

// Clock returns nil: there is no clock that goes on while the machine sleeps.
func Clock() func() time.Duration { return nil }
