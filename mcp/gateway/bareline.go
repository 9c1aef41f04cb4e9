package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bareLine is a session of the server of a view that all requests without a
// handshake share, in one revision: a session for each would cost most of the
// time of a call. Requests carry their callers, and ids of our own, so that
// nothing of one is seen by another.
type bareLine struct {
	*line

	mu      sync.Mutex
	number  float64 // of the last request
	waiting map[float64]chan *jsonrpc.Response
}

// callerExtra is where a request carries its caller: inside the process only.
const callerExtra = "xiaozhi/caller"

// bareLine is the line for a revision, made when it is first asked for.
func (v *view) bareLine(ctx context.Context, version string) (*bareLine, error) {
	v.bareMu.Lock()
	defer v.bareMu.Unlock()
	if l := v.bare[version]; l != nil && !l.over() {
		return l, nil
	}
	l := &bareLine{waiting: map[float64]chan *jsonrpc.Response{}}
	l.line = newLine(l.answer)
	_, err := v.server.Connect(context.WithoutCancel(ctx), l, &sdk.ServerSessionOptions{State: &sdk.ServerSessionState{
		InitializeParams: &sdk.InitializeParams{ProtocolVersion: version}, InitializedParams: &sdk.InitializedParams{},
	}})
	if err != nil {
		return nil, err
	}
	if v.bare == nil {
		v.bare = map[string]*bareLine{}
	}
	v.bare[version] = l
	return l, nil
}

// ask sends a request and waits for its answer, or until ctx ends.
func (l *bareLine) ask(ctx context.Context, c caller, header http.Header, m rpcMessage) (*jsonrpc.Response, error) {
	l.mu.Lock()
	l.number++
	number, answer := l.number, make(chan *jsonrpc.Response, 1)
	l.waiting[number] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, number)
	}()
	id, err := jsonrpc.MakeID(number)
	if err != nil {
		return nil, err
	}
	request := &jsonrpc.Request{ID: id, Method: *m.Method, Params: m.Params, Extra: &sdk.RequestExtra{
		Header: header, TokenInfo: &auth.TokenInfo{Extra: map[string]any{callerExtra: c}},
	}}
	if err := l.put(ctx, request); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-l.done:
		return nil, io.ErrClosedPipe
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// callerOf is the caller that a request carries, if it came by a bareLine.
func callerOf(extra *sdk.RequestExtra) (caller, bool) {
	if extra == nil || extra.TokenInfo == nil {
		return caller{}, false
	}
	c, ok := extra.TokenInfo.Extra[callerExtra].(caller)
	return c, ok
}

// answer takes an answer to whoever asked. Everything else is for nobody: those
// who come without a handshake are told nothing that they did not ask for.
func (l *bareLine) answer(m jsonrpc.Message) error {
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
	l.mu.Lock()
	answer := l.waiting[number]
	l.mu.Unlock()
	if answer != nil {
		answer <- r
	}
	return nil
}

// rpcAnswer is a result as the wire has it.
type rpcAnswer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
}

// rpcErrorData is an error with data as the wire has it.
type rpcErrorData struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *jsonrpc.Error  `json:"error"`
}

// encodeAnswer is an answer of the server as the answer to m.
func encodeAnswer(m rpcMessage, r *jsonrpc.Response) json.RawMessage {
	var data []byte
	var err error
	if r.Error == nil {
		data, err = json.Marshal(rpcAnswer{"2.0", m.ID, r.Result})
	} else {
		e := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: oneLine(r.Error)}
		if wire, ok := errors.AsType[*jsonrpc.Error](r.Error); ok {
			e.Code, e.Data = wire.Code, wire.Data
		}
		data, err = json.Marshal(rpcErrorData{"2.0", m.ID, e})
	}
	if err != nil {
		return rpcFailure(m, jsonrpc.CodeInternalError, oneLine(err))
	}
	return data
}
