package websocket

import (
	"errors"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestSendBufferSize fills the connection to a peer that does not read: the
// system takes little, so that a stuck device is noticed by the write deadline.
func TestSendBufferSize(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	// Before the connection is made: the window is announced with it.
	small := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) {
			failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		})
		return errors.Join(err, failed)
	}}
	peer, err := small.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	ours, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	shrinkSendBuffer(ours)
	taken, frame := 0, make([]byte, 200)
	for taken < 1<<20 {
		if err := ours.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := ours.Write(frame)
		taken += n
		if err != nil {
			break
		}
	}
	most := 200 << 10 // without any limit it is megabytes
	if runtime.GOOS == "linux" {
		most = 16 << 10 // the window of the peer, what may be unsent, and one write
	}
	if taken > most {
		t.Errorf("%d bytes were taken for a peer that does not read", taken)
	}
}
