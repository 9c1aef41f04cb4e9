package gateway

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// line is a session's end of a way in that is not the SDK's own: an
// sdk.Connection whose messages are put in by put and go out by write. put may be
// called at the same time as everything else.
type line struct {
	in    chan jsonrpc.Message // size 16; those who put wait
	done  chan struct{}        // closed by Close
	once  sync.Once
	write func(jsonrpc.Message) error
}

func newLine(write func(jsonrpc.Message) error) *line {
	return &line{in: make(chan jsonrpc.Message, 16), done: make(chan struct{}), write: write}
}

// put gives the session a message. io.ErrClosedPipe if it has ended.
func (l *line) put(ctx context.Context, m jsonrpc.Message) error {
	select {
	case l.in <- m:
		return nil
	case <-l.done:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over reports whether the session has ended.
func (l *line) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Connect is the line itself: it is connected already.
func (l *line) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID is none: the way in is the session.
func (l *line) SessionID() string { return "" }

// Read is the next message for the session.
func (l *line) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-l.in:
		return m, nil
	case <-l.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message of the session.
func (l *line) Write(_ context.Context, m jsonrpc.Message) error { return l.write(m) }

// Close ends the session's part; the way in may live on.
func (l *line) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}
