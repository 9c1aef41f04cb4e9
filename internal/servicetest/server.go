// Package servicetest holds what the fakes of services share: a server on a real
// loopback socket, the faults that it can be told to have, what it has counted, and
// the words and the sound that a fake answers with. Each service has a fake in a folder
// of its own below this one, written from the protocol that its vendor documents.
package servicetest

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Key is the key that every fake takes unless its own options say otherwise. Services
// that want several take ID and Secret beside it.
const (
	Key    = "sk-right-key-0123456789"
	ID     = "app-0123456789"
	Secret = "right-secret-0123456789"
)

// Fault is a way in which a service lets its clients down.
type Fault int

// The faults. A fake says with [Server.Knows] which of them its service can have.
const (
	None        Fault = iota
	WrongKey          // the key is refused, in the vendor's way
	NoMoney           // the account is in arrears
	RateLimited       // too many requests, or too many at once
	WrongModel        // the model is unknown or not bought
	WrongVoice        // the voice is unknown
	ClockAhead        // the server's clock is ten minutes ahead of ours; signed requests that do not say so are refused
	Slow              // everything comes 300 ms late
	Silent            // it takes everything and never answers
	Cut               // the connection drops after the first result, without a close
	Closed            // it closes in the middle in its own way, with code 1011 or the end of the body
	Broken            // a message that is not its protocol: broken JSON, a torn header
	Huge              // an answer that does not end: more than 64 MiB
	Odd               // allowed, and to be taken: messages cut at odd bytes, unknown events and fields, pings
	Stale             // a result of the request before comes first on a connection that is used again, if it can be
	Ends              // (recognition) it ends its session in the middle of the speech with what it has
	Parts             // (recognition) it gives the speech as two finished sentences
	Late              // (recognition) nothing comes after the end of the sound
	Last              // the number of faults
)

var faultNames = [Last]string{
	"none", "wrong key", "no money", "rate limited", "wrong model", "wrong voice", "clock ahead", "slow", "silent", "cut",
	"closed", "broken", "huge", "odd", "stale", "ends", "parts", "late",
}

// String returns the fault's name in tests.
func (f Fault) String() string { return faultNames[f] }

// Skew is how far the clock of a server that is [ClockAhead] is ahead.
const Skew = 10 * time.Minute

// Server is a fake of a service, or a part of one. Its zero value is not ready: [New]
// makes it. It may be used by any number of goroutines at once.
type Server struct {
	t     testing.TB
	http  *httptest.Server // nil if it speaks no HTTP
	tcp   net.Listener     // nil if it does
	stop  context.CancelFunc
	ctx   context.Context //nolint:containedctx // the life of the server, which its handlers share
	knows map[Fault]bool
	talks sync.WaitGroup // the conversations of a server without HTTP

	mu       sync.Mutex
	fault    Fault
	open     map[net.Conn]struct{} // those that a client has not closed
	conns    int                   // that were ever opened
	requests []Request
}

// Request is one that a client has made, for tests that look at it.
type Request struct {
	Method string
	Path   string // with the query
	Header http.Header
	Body   []byte // of a plain request; for a WebSocket, the text messages one after another, each ended by a newline
}

// New starts a server on the loopback interface that ends with the test. Its handler is
// to answer by [Server.Fault]; knows lists the faults that it can have beside None.
func New(t testing.TB, handler http.HandlerFunc, knows ...Fault) *Server {
	t.Helper()
	s := prepare(t, knows)
	s.http = httptest.NewUnstartedServer(handler)
	s.http.Config.ConnState = s.state
	s.http.Listener = counted{s.http.Listener, s}
	s.http.Start()
	t.Cleanup(s.close)
	return s
}

// prepare makes a server without a socket.
func prepare(t testing.TB, knows []Fault) *Server {
	s := &Server{t: t, knows: map[Fault]bool{None: true}, open: map[net.Conn]struct{}{}}
	for _, f := range knows {
		s.knows[f] = true
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Ended is closed when the server ends. Whoever answers nothing waits for it.
func (s *Server) Ended() <-chan struct{} { return s.ctx.Done() }

// close ends the server and all that is connected.
func (s *Server) close() {
	s.stop()
	if s.tcp != nil {
		_ = s.tcp.Close()
	}
	for _, c := range s.connected() {
		_ = c.Close()
	}
	if s.http != nil {
		s.http.Close()
	}
	s.talks.Wait()
}

// connected lists what is connected. Closing a connection takes the lock.
func (s *Server) connected() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}

func (s *Server) state(c net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		s.gone(c)
	}
}

func (s *Server) gone(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// counted is a listener that counts what is connected.
type counted struct {
	net.Listener
	s *Server
}

// Accept returns the next connection.
func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c = &conn{c, l.s}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.conns++
	l.s.open[c] = struct{}{}
	return c, nil
}

// conn is a connection that is counted until either side has closed it.
type conn struct {
	net.Conn
	s *Server
}

// Read reads; an error says that the client is gone.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if timeout, ok := err.(net.Error); err != nil && (!ok || !timeout.Timeout()) { //nolint:errorlint // net gives it unwrapped
		c.s.gone(c)
	}
	return n, err
}

// Close closes the connection.
func (c *conn) Close() error {
	c.s.gone(c)
	return c.Conn.Close()
}

// URL is the address of the server: http://127.0.0.1:PORT, or tcp://127.0.0.1:PORT of
// one that [NewTCP] made.
func (s *Server) URL() string {
	if s.tcp != nil {
		return "tcp://" + s.tcp.Addr().String()
	}
	return s.http.URL
}

// WS is the same address for WebSocket: ws://127.0.0.1:PORT.
func (s *Server) WS() string { return "ws" + strings.TrimPrefix(s.URL(), "http") }

// Knows says whether the service can have a fault.
func (s *Server) Knows(f Fault) bool { return s.knows[f] }

// Fail gives the server a fault, for requests and sessions that begin from now on.
func (s *Server) Fail(f Fault) {
	s.t.Helper()
	if !s.knows[f] {
		s.t.Fatalf("the fake cannot be %q", f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Fault returns the fault that the server has. A handler reads it once a request.
func (s *Server) Fault() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Open returns the number of connections that no side has closed.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Conns returns the number of connections that were ever opened.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// Note keeps a request for [Server.Requests].
func (s *Server) Note(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// Requests returns what was asked so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Now is the server's clock.
func (s *Server) Now() time.Time {
	if s.Fault() == ClockAhead {
		return time.Now().Add(Skew)
	}
	return time.Now()
}

// Socket takes a WebSocket. The caller closes it before its handler returns. A request
// that is no upgrade fails the test.
func (s *Server) Socket(w http.ResponseWriter, r *http.Request, header http.Header) (*websocket.Conn, bool) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }, Subprotocols: websocket.Subprotocols(r)}
	c, err := up.Upgrade(w, r, header)
	if err != nil {
		s.t.Errorf("a request that is no upgrade: %v", err)
		return nil, false
	}
	return c, true
}

// Hold waits until the client has closed the socket, or the server ends, and reads what
// comes meanwhile. It is how a fake stays silent.
func (s *Server) Hold(c *websocket.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, _, err := c.NextReader(); err != nil {
				return
			}
		}
	}()
	select {
	case <-done:
	case <-s.ctx.Done():
		_ = c.Close()
		<-done
	}
}

// Drop ends the connection of a request or a socket without a word.
func Drop(c net.Conn) {
	if inner, ok := c.(*conn); ok {
		if tcp, ok := inner.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	_ = c.Close()
}

// DropRequest ends the connection of a plain request without a word, with what was
// written before.
func DropRequest(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}
