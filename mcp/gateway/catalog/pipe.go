package catalog

import (
	"context"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Pipe is the end of a session on a transport that is not the SDK's own: an
// [sdk.Connection] whose messages are put in by Put and go out by a function. Put
// may be called at the same time as everything else.
type Pipe struct {
	in    chan jsonrpc.Message // size 16; Put waits when it is full
	done  chan struct{}        // closed by Close
	once  sync.Once
	write func(jsonrpc.Message) error
}

// NewPipe makes a pipe whose messages go out by write.
func NewPipe(write func(jsonrpc.Message) error) *Pipe {
	return &Pipe{in: make(chan jsonrpc.Message, 16), done: make(chan struct{}), write: write}
}

// Put gives the session a message. It returns [io.ErrClosedPipe] if the session has ended.
func (p *Pipe) Put(ctx context.Context, m jsonrpc.Message) error {
	select {
	case p.in <- m:
		return nil
	case <-p.done:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Over reports whether the session has ended.
func (p *Pipe) Over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Connect returns the pipe, which is connected already.
func (p *Pipe) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID returns "": the connection is the session.
func (p *Pipe) SessionID() string { return "" }

// Read returns the next message for the session.
func (p *Pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.in:
		return m, nil
	case <-p.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message of the session.
func (p *Pipe) Write(_ context.Context, m jsonrpc.Message) error { return p.write(m) }

// Close ends the session. What carries its messages may live on.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}
