package connection

import (
	"net"
	"testing"
	"time"
)

// TestSendBufferIsSmall fills the connection to a peer that does not read: the
// system takes little, so that a stuck device is noticed by the write deadline.
func TestSendBufferIsSmall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peer, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if err := peer.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
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
	const most = 200 << 10 // without the limit it is megabytes
	if taken > most {
		t.Errorf("%d bytes were taken for a peer that does not read", taken)
	}
}
