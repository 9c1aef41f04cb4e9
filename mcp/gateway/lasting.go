package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// wire is a stream or a socket that messages go out by. Its methods may be
// called at the same time.
type wire interface {
	// send writes one message, in time.
	send(data []byte) error
	// end hangs up.
	end()
}

// talk is the JSON-RPC side of a connection that lasts: it gives the messages
// that come in to a session of the view. A client that does not begin with
// initialize gets a session as if it had, in the seeds' revision; one that does
// so later gets a new one.
type talk struct {
	view *view
	wire wire

	mu      sync.Mutex
	session *sdk.ServerSession
	line    *line
	assumed bool // the handshake was not made by the client
	wg      sync.WaitGroup
}

// line is one session's end of a talk: an sdk.Connection.
type line struct {
	talk *talk
	in   chan jsonrpc.Message // size 16; the reader of the wire waits
	done chan struct{}
	once sync.Once
}

func newTalk(v *view, w wire) *talk { return &talk{view: v, wire: w} }

// receive takes one message from the wire. What cannot be read is answered; the
// error is one of the wire. ctx is that of the connection and carries the caller.
func (t *talk) receive(ctx context.Context, data []byte) error {
	language := callerFrom(ctx).language
	var m rpcMessage
	if mcp.Depth(data) > maxDepth {
		return t.wire.send(rpcFailure(rpcMessage{}, jsonrpc.CodeInvalidRequest, say(language, "嵌套太深", "nested too deeply")))
	}
	if err := json.Unmarshal(data, &m); err != nil {
		if json.Valid(data) {
			return t.wire.send(rpcFailure(m, jsonrpc.CodeInvalidRequest, say(language, "不是 JSON-RPC 请求", "this is no JSON-RPC request")))
		}
		return t.wire.send(rpcFailure(m, jsonrpc.CodeParseError, say(language, "不是有效的 JSON", "this is no JSON")))
	}
	if problem := checkMessage(m, language); problem != nil {
		return t.wire.send(rpcFailure(m, problem.Code, problem.Message))
	}
	if m.Method != nil {
		if problem := t.view.gateway.checkMethod(m, language); problem != nil {
			return t.wire.send(rpcFailure(m, problem.Code, problem.Message))
		}
	}
	message, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return t.wire.send(rpcFailure(m, jsonrpc.CodeInvalidRequest, oneLine(err)))
	}
	initialize := m.Method != nil && *m.Method == "initialize"
	l, err := t.lineFor(ctx, initialize, metaVersion(m.Params))
	if err != nil {
		return err
	}
	select {
	case l.in <- message:
		return nil
	case <-l.done:
		return io.ErrClosedPipe
	}
}

// lineFor is the line to the session that a message is for.
func (t *talk) lineFor(ctx context.Context, initialize bool, version string) (*line, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line != nil && (!initialize || !t.assumed) {
		return t.line, nil
	}
	if t.session != nil { // it began without a handshake: its calls go on, and it ends
		old := t.session
		t.wg.Go(func() { _ = old.Close() })
	}
	l := &line{talk: t, in: make(chan jsonrpc.Message, 16), done: make(chan struct{})}
	var state *sdk.ServerSessionState
	if !initialize && version < versionModern {
		state = &sdk.ServerSessionState{
			InitializeParams:  &sdk.InitializeParams{ProtocolVersion: version2024},
			InitializedParams: &sdk.InitializedParams{}, LogLevel: "info",
		}
	}
	session, err := t.view.server.Connect(ctx, l, &sdk.ServerSessionOptions{State: state})
	if err != nil {
		return nil, err
	}
	t.session, t.line, t.assumed = session, l, state != nil
	return l, nil
}

// close ends the session and waits.
func (t *talk) close() {
	t.mu.Lock()
	session, l := t.session, t.line
	t.mu.Unlock()
	if session != nil {
		_ = l.Close()
		_ = session.Close()
	}
	t.wg.Wait()
}

// Connect is the line itself: it is connected already.
func (l *line) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID is none: the connection is the session.
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
func (l *line) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return l.talk.wire.send(data)
}

// Close ends the session's part; the wire lives on.
func (l *line) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

var errWireClosed = errors.New("the other side has gone")
