package connection

import (
	"net"

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
