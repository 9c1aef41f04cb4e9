package gateway

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// wire is a stream or a socket that messages go out by. Its methods may be
// called at the same time.
type wire interface {
	// send writes one message, in time.
	send(data []byte) error
	// end hangs up.
	end()
}

var errWireClosed = errors.New("the other side has gone")

// news sends the messages of a session that no client has asked for, and that go to
// many: a client that reads slowly must not keep them from the others. It owns the
// queue of them. A client that does not take them in time is hung up on.
type news struct {
	wire  wire
	queue chan []byte   // size maxNews
	lost  atomic.Bool   // the queue was full
	over  chan struct{} // closed by close
}

func newNews(w wire) *news {
	return &news{wire: w, queue: make(chan []byte, maxNews), over: make(chan struct{})}
}

// add has a message sent by run. It never waits.
func (n *news) add(data []byte) error {
	select {
	case n.queue <- data:
		return nil
	default:
		n.lost.Store(true)
		return errWireClosed
	}
}

// run sends what is added, until close or until it cannot be sent.
func (n *news) run() {
	for {
		select {
		case <-n.over:
			return
		case data := <-n.queue:
			if n.lost.Load() || n.wire.send(data) != nil {
				n.wire.end()
				return
			}
		}
	}
}

// close ends run. It is called once.
func (n *news) close() { close(n.over) }

// isNews reports whether a message goes to all clients that want it.
func isNews(m *jsonrpc.Request) bool {
	return !m.IsCall() && (strings.HasSuffix(m.Method, "/list_changed") || m.Method == "notifications/resources/updated")
}
