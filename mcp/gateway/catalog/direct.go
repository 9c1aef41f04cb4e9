package catalog

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// direct answers requests without a handshake. All of one revision share a session
// of the view's server: a session for each would cost most of the time of a call.
type direct struct {
	mu         sync.Mutex
	byRevision map[string]*sharedSession
}

// sharedSession is the session that requests without a handshake share in one
// revision. Requests carry their callers, and ids of our own, so that nothing of one
// is seen by another.
type sharedSession struct {
	*Pipe

	mu      sync.Mutex
	number  float64 // of the last request
	waiting map[jsonrpc.ID]chan *jsonrpc.Response
}

const callerExtra = "xiaozhi/caller"

func (d *direct) session(ctx context.Context, server *sdk.Server, revision string) (*sharedSession, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.byRevision[revision]; s != nil && !s.Over() {
		return s, nil
	}
	s := &sharedSession{waiting: map[jsonrpc.ID]chan *jsonrpc.Response{}}
	s.Pipe = NewPipe(s.answer)
	_, err := server.Connect(context.WithoutCancel(ctx), s, &sdk.ServerSessionOptions{State: &sdk.ServerSessionState{
		InitializeParams: &sdk.InitializeParams{ProtocolVersion: revision}, InitializedParams: &sdk.InitializedParams{},
	}})
	if err != nil {
		return nil, err
	}
	d.byRevision[revision] = s
	return s, nil
}

// Ask has the server answer one request without a session, in a revision. header is
// that of the request that carried it. The error is that of ctx, or of a server
// that has ended.
func (v *View) Ask(ctx context.Context, c Caller, revision string, header http.Header, r *jsonrpc.Request) (*jsonrpc.Response, error) {
	s, err := v.direct.session(ctx, v.server, revision)
	if err != nil {
		return nil, err
	}
	answer := make(chan *jsonrpc.Response, 1)
	s.mu.Lock()
	s.number++
	id, err := jsonrpc.MakeID(s.number)
	s.waiting[id] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, id)
	}()
	if err == nil {
		err = s.Put(ctx, &jsonrpc.Request{ID: id, Method: r.Method, Params: r.Params, Extra: &sdk.RequestExtra{
			Header: header, TokenInfo: &auth.TokenInfo{Extra: map[string]any{callerExtra: c}},
		}})
	}
	if err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-s.done:
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// callerOf returns the caller that a request carries, if it came without a handshake.
func callerOf(extra *sdk.RequestExtra) (Caller, bool) {
	if extra == nil || extra.TokenInfo == nil {
		return Caller{}, false
	}
	c, ok := extra.TokenInfo.Extra[callerExtra].(Caller)
	return c, ok
}

// answer gives an answer to the request that waits for it. All other messages are
// dropped: a client without a handshake is told nothing that it did not ask for.
func (s *sharedSession) answer(m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return nil
	}
	s.mu.Lock()
	answer := s.waiting[r.ID]
	s.mu.Unlock()
	if answer != nil {
		answer <- r
	}
	return nil
}

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
