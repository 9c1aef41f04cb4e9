//go:build !linux

package connection

import "net"

// limitUnsent is not known here: the send buffer alone is the limit.
func limitUnsent(*net.TCPConn, int) {}
