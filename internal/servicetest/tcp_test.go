package servicetest

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestPlainConnectionsAreCountedToo(t *testing.T) {
	s := NewTCP(t, func(c net.Conn) { _, _ = io.Copy(c, c) }, Cut)
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "hello")
	back := make([]byte, 5)
	if _, err := io.ReadFull(c, back); err != nil || string(back) != "hello" {
		t.Errorf("got %q and error %v", back, err)
	}
	if s.Open() != 1 || s.Conns() != 1 || !s.Knows(Cut) {
		t.Errorf("%d open of %d, want 1 of 1", s.Open(), s.Conns())
	}
	_ = c.Close()
	for end := time.Now().Add(5 * time.Second); s.Open() > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if s.Open() != 0 {
		t.Error("a closed connection is still counted")
	}
}

func TestServerEndsWithWhatIsConnected(t *testing.T) {
	var c net.Conn
	t.Run("the test of the server", func(t *testing.T) {
		s := NewTCP(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		var err error
		if c, err = net.Dial("tcp", strings.TrimPrefix(s.URL(), "tcp://")); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlives the server")
	}
	_ = c.Close()
}
