//go:build !linux

package app

import "time"

// uptime returns nil: there is no clock that goes on while the machine sleeps.
func uptime() func() time.Duration { return nil }
