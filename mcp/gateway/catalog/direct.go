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
	server *sdk.Server

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
	waiting map[float64]chan *jsonrpc.Response
}

// callerExtra is the key of the caller that a request carries inside the process.
const callerExtra = "xiaozhi/caller"

// session returns the session of a revision, made when it is first asked for.
func (d *direct) session(ctx context.Context, revision string) (*sharedSession, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.byRevision[revision]; s != nil && !s.Over() {
		return s, nil
	}
	s := &sharedSession{waiting: map[float64]chan *jsonrpc.Response{}}
	s.Pipe = NewPipe(s.answer)
	_, err := d.server.Connect(context.WithoutCancel(ctx), s, &sdk.ServerSessionOptions{State: &sdk.ServerSessionState{
		InitializeParams: &sdk.InitializeParams{ProtocolVersion: revision}, InitializedParams: &sdk.InitializedParams{},
	}})
	if err != nil {
		return nil, err
	}
	if d.byRevision == nil {
		d.byRevision = map[string]*sharedSession{}
	}
	d.byRevision[revision] = s
	return s, nil
}

// sessions returns how many sessions there are.
func (d *direct) sessions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.byRevision)
}

// ask has the server answer a request, in a revision.
func (d *direct) ask(ctx context.Context, c Caller, revision string, header http.Header, r *jsonrpc.Request) (*jsonrpc.Response, error) {
	s, err := d.session(ctx, revision)
	if err != nil {
		return nil, err
	}
	return s.ask(ctx, &jsonrpc.Request{Method: r.Method, Params: r.Params, Extra: &sdk.RequestExtra{
		Header: header, TokenInfo: &auth.TokenInfo{Extra: map[string]any{callerExtra: c}},
	}})
}

// ask sends a request, which gets an id, and waits for its answer.
func (s *sharedSession) ask(ctx context.Context, request *jsonrpc.Request) (*jsonrpc.Response, error) {
	s.mu.Lock()
	s.number++
	number, answer := s.number, make(chan *jsonrpc.Response, 1)
	s.waiting[number] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, number)
	}()
	var err error
	if request.ID, err = jsonrpc.MakeID(number); err != nil {
		return nil, err
	}
	if err := s.Put(ctx, request); err != nil {
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
	var number float64
	switch id := r.ID.Raw().(type) {
	case int64:
		number = float64(id)
	case float64:
		number = id
	}
	s.mu.Lock()
	answer := s.waiting[number]
	s.mu.Unlock()
	if answer != nil {
		answer <- r
	}
	return nil
}
