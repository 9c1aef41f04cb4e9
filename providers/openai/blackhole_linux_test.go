package openai

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"xiaozhi/providers"
)

// TestPeerUnreachable asks an address at which packets are dropped: a
// socket whose queue of connections is full. No retry follows, for connecting
// has taken longer than anybody waits.
func TestPeerUnreachable(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 8 {
		conn, err := (&net.Dialer{Timeout: 100 * time.Millisecond}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			break // the queue is full
		}
		defer func() { _ = conn.Close() }()
	}
	start := time.Now()
	_, err = generate(t.Context(), newLLM(t, Options{Name: "fake", BaseURL: "http://" + address, Model: "m"}), ask)
	wantError(t, err, providers.Unavailable, "timeout")
	t.Logf("known after %v", time.Since(start))
}
