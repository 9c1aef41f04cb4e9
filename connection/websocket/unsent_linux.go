package websocket

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnsent lets writes wait while that many bytes are not sent yet, because
// the window of the peer is full. Bytes on their way do not count, so a slow
// network loses nothing by it.
func limitUnsent(tcp *net.TCPConn, limit int) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, limit)
	})
}

// acknowledged reports whether the peer's system has acknowledged what was sent
// so long ago, or has said since that its window is full.
func acknowledged(tcp *net.TCPConn, within time.Duration) bool {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	ok := true
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		ok = err != nil || info.Unacked == 0 || time.Duration(info.Last_ack_recv)*time.Millisecond < within
	})
	return ok
}
