package websocket

import (
	"bufio"
	"errors"
	"net"
	"net/http"
)

// maxOverhead is how many bytes of frame headers one message may have, beside its
// payload: 10,000 fragments.
const maxOverhead = 64 << 10

// errFlood is the end of a message that is made of too many fragments.
var errFlood = errors.New("message of too many fragments")

// meteredConn ends a message whose raw bytes are more than any message needs. The
// WebSocket library limits payloads only: it reads a message of endless empty
// fragments without ever coming back (TestEndlessFragments). It is for the reader.
type meteredConn struct {
	net.Conn
	left int // bytes that may still be read
}

// Read reads as long as there are bytes left.
func (m *meteredConn) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errFlood
	}
	n, err := m.Conn.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}

// begin allows for one more message.
func (m *meteredConn) begin() { m.left = maxText + maxOverhead }

// skip does not count a control frame with a payload of n bytes.
func (m *meteredConn) skip(n int) { m.left += 6 + n }

// hijacker gives the upgrader the metered connection in the place of its own.
type hijacker struct {
	http.ResponseWriter
	in *meteredConn
}

// Hijack takes the connection over.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.in.Conn = nc
	h.in.begin()
	return h.in, rw, nil
}
