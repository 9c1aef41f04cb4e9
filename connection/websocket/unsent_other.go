//go:build !linux

package websocket

import (
	"net"
	"time"
)

// limitUnsent is not known here: the send buffer alone is the limit.
func limitUnsent(*net.TCPConn, int) {}

// acknowledged is not known here either.
func acknowledged(*net.TCPConn, time.Duration) bool { return true }
