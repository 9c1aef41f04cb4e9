package wyoming

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	connectTime = 3 * time.Second
	writeTime   = 5 * time.Second // of one event
)

// address returns host and port of tcp://HOST:PORT, wyoming://HOST:PORT or HOST:PORT.
func address(base string) (string, error) {
	host := base
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		if u.Scheme != "tcp" && u.Scheme != "wyoming" {
			return "", fmt.Errorf("base_url: it begins with %q, not with tcp", u.Scheme)
		}
		host = u.Host
	}
	if _, port, err := net.SplitHostPort(host); err != nil || port == "" {
		return "", errors.New("base_url: it is not of the form tcp://HOST:PORT")
	}
	return host, nil
}

// server is a server that speaks Wyoming.
type server struct {
	account transport.Account
	at      string // host and port
	limits  service.Timeouts
}

// newServer checks what a section says of where the server is.
func newServer(s service.Section, limits service.Timeouts) (server, error) {
	at, err := address(s.BaseURL)
	if err != nil {
		return server{}, fmt.Errorf("%s: %w", s.Name, err)
	}
	return server{account: transport.Account{Name: s.Name, Careful: s.Careful}, at: at, limits: service.Timeouts{
		Connect: cmp.Or(s.Timeouts.Connect, limits.Connect, connectTime),
		First:   cmp.Or(s.Timeouts.First, limits.First),
		Next:    cmp.Or(s.Timeouts.Next, limits.Next),
	}}, nil
}

// conn is a connection. One goroutine reads while another writes; Close may be called by
// any, more than once.
type conn struct {
	tcp    net.Conn
	in     *bufio.Reader
	unbind func() bool
}

// dial connects. The end of ctx closes the connection, also later.
func (s server) dial(ctx context.Context) (*conn, error) {
	tcp, err := s.account.TCP(ctx, s.at, s.limits.Connect)
	if err != nil {
		return nil, err
	}
	c := &conn{tcp: tcp, in: bufio.NewReaderSize(tcp, 16<<10)}
	c.unbind = context.AfterFunc(ctx, func() { _ = tcp.Close() })
	return c, nil
}

// Close ends the connection.
func (c *conn) Close() {
	c.unbind()
	_ = c.tcp.Close()
}

// write sends an event.
func (c *conn) write(kind string, data any, payload []byte) error {
	b, err := encode(kind, data, payload)
	if err != nil {
		return err
	}
	_ = c.tcp.SetWriteDeadline(time.Now().Add(writeTime)) // an error shows again when it is written
	_, err = c.tcp.Write(b)
	return err
}

// read returns the next event that is not an error. within says how long it may take; 0: for ever.
func (c *conn) read(within time.Duration) (event, error) {
	var until time.Time
	if within > 0 {
		until = time.Now().Add(within)
	}
	_ = c.tcp.SetReadDeadline(until) // an error shows again when it is read
	e, err := decode(c.in)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return e, transport.ErrStalled
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return e, errors.New("the server closed the connection")
	case err != nil:
		return e, err
	case e.Type == "error":
		kind, words := providers.Unavailable, cmp.Or(e.text("text"), "the server had an error")
		if strings.Contains(words, "unknown ") || strings.Contains(words, "to find ") || strings.Contains(words, "not found") { // of a model or a voice
			kind = providers.BadRequest
		}
		return e, transport.Refused(kind, e.text("code"), words)
	}
	return e, nil
}
