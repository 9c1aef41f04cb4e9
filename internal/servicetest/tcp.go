package servicetest

import (
	"net"
	"testing"
)

// NewTCP starts a server that speaks no HTTP, on the loopback interface: talk holds the
// conversation on one connection, which is closed when it returns. Everything else is as
// with [New]; [Server.Socket] and what needs a request are not for it.
func NewTCP(t testing.TB, talk func(net.Conn), knows ...Fault) *Server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	s := prepare(t, knows)
	s.tcp = counted{l, s}
	t.Cleanup(s.close)
	s.talks.Go(func() { s.accept(talk) })
	return s
}

// accept takes connections until the server ends.
func (s *Server) accept(talk func(net.Conn)) {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		s.talks.Go(func() {
			defer func() { _ = c.Close() }()
			talk(c)
		})
		if s.ctx.Err() != nil {
			_ = c.Close() // it came while the server was ending
		}
	}
}
