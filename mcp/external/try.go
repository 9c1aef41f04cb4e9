package external

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"xiaozhi/internal/nearby"
)

// maxTried bounds what the server of a [Try] may send, in bytes.
const maxTried = 1 << 20

var errTriedMuch = fmt.Errorf("it sent more than %d bytes", maxTried)

// Try connects once to the server of a config, reads its list of tools, and lets it go. It says how that went and how long
// it took. What a person typed is tried so before it is kept: no link-local address is asked, and no more than 1 MiB is read
// from each connection. The error has no secrets.
func Try(ctx context.Context, name string, c Config, o ServerOptions) (now Status, took time.Duration, err error) {
	o.dial = careful
	s := NewServer(name, c, o)
	ended := s.condition.next()
	began := time.Now()
	defer func() {
		now, took = s.Status(), time.Since(began)
		_ = s.Stop() // a program is ended with it
	}()
	if err := s.Start(ctx); err != nil {
		return now, 0, err
	}
	select {
	case <-ended:
	case <-ctx.Done():
		return now, 0, context.Cause(ctx)
	}
	if is := s.condition.status(); is.Phase != Connected {
		return now, 0, errors.New(is.Error)
	}
	return now, 0, nil
}

// careful opens a connection, but to no link-local address, and reads only so much from it.
func careful(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialLimit, Control: nearby.Careful}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &limitedConn{Conn: conn, left: maxTried}, nil
}

// limitedConn is a connection from which only so much is read. It is read by one goroutine.
type limitedConn struct {
	net.Conn
	left int
}

// Read reads until the limit.
func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTriedMuch
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
