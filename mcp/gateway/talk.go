package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// talk is the JSON-RPC side of a connection that lasts: it gives the messages
// that come in to a session of the view. A client that does not begin with
// initialize gets a session as if it had, in the revision that the request for the
// connection named, else in that of 2024; one that does so later gets a new one.
type talk struct {
	front   *front
	view    *catalog.View
	wire    wire
	version string // of a session without a handshake
	metered bool   // each request counts against the rate of its token
	calls   places // size maxCalls; one is taken by each call and each stream of changes
	asks    places // size maxAsks; of all other requests: short ones, with answers that may be long

	news *news

	mu      sync.Mutex
	session *sdk.ServerSession
	line    *talkLine
	assumed bool // the handshake was not made by the client
	closed  bool // no session is begun any more
	wg      sync.WaitGroup
}

// newTalk begins a talk, which must be closed. header is that of the request for
// the connection.
func newTalk(f *front, v *catalog.View, w wire, header http.Header) *talk {
	version := header.Get(headerVersion)
	if version >= catalog.VersionModern || !slices.Contains(sdk.SupportedProtocolVersions(), version) {
		version = catalog.Version2024
	}
	t := &talk{front: f, view: v, wire: w, version: version, calls: make(places, maxCalls), asks: make(places, maxAsks), news: newNews(w)}
	t.wg.Go(t.news.run)
	return t
}

// receive takes one message from the wire. What cannot be read is answered; the
// error is one of the wire. ctx is that of the connection and carries the caller.
func (t *talk) receive(ctx context.Context, data []byte) error {
	m, read, problem := t.read(ctx, data)
	if problem != nil {
		return t.wire.send(rpcFailure(m, problem.Code, problem.Message))
	}
	initialize := m.Method != nil && *m.Method == "initialize"
	l, err := t.lineFor(ctx, initialize, metaVersion(m.Params))
	if err != nil {
		return err
	}
	if request, ok := read.(*jsonrpc.Request); ok {
		if refusal := t.admit(ctx, l, m, request); refusal != nil {
			return t.wire.send(refusal)
		}
	}
	return l.Put(ctx, read)
}

// admit notes a request that is to be answered, or one that is taken back. It
// gives what to answer instead where there is no room for it.
func (t *talk) admit(ctx context.Context, l *talkLine, m rpcMessage, request *jsonrpc.Request) (refusal []byte) {
	if !request.IsCall() {
		if request.Method == "notifications/cancelled" {
			l.cancel(request.Params)
		}
		return nil
	}
	c, room := catalog.CallerFrom(ctx), t.placesFor(request.Method)
	switch {
	case !t.within(ctx):
		return rpcFailure(m, catalog.CodeRefused, c.Say("gateway/too-many-requests"))
	case !room.take(ctx):
		return rpcFailure(m, catalog.CodeRefused, c.Say("gateway/requests-at-once"))
	case !l.ask(request.ID, room):
		room.free()
		text := c.Say("gateway/id-in-use", catalog.Clip(string(m.ID)))
		return rpcFailure(rpcMessage{}, jsonrpc.CodeInvalidRequest, text) // with its id it would answer the other one
	}
	return nil
}

// read reads one message, or says what is wrong with it.
func (t *talk) read(ctx context.Context, data []byte) (m rpcMessage, read jsonrpc.Message, problem *rpcProblem) {
	c := catalog.CallerFrom(ctx)
	wrong := func(code int, id string) *rpcProblem { return &rpcProblem{code, c.Say(id)} }
	if deep(data) {
		return m, nil, wrong(jsonrpc.CodeInvalidRequest, "gateway/nested")
	}
	if err := json.Unmarshal(data, &m); err != nil {
		if json.Valid(data) {
			return m, nil, wrong(jsonrpc.CodeInvalidRequest, "gateway/no-request")
		}
		return m, nil, wrong(jsonrpc.CodeParseError, "gateway/no-json")
	}
	if problem := checkMessage(m, c); problem != nil {
		return m, nil, problem
	}
	if problem := checkID(m.ID, c); problem != nil {
		return m, nil, problem
	}
	if m.Method != nil {
		if problem := checkMethod(m, c); problem != nil {
			return m, nil, problem
		}
	}
	read, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return m, nil, &rpcProblem{jsonrpc.CodeInvalidRequest, catalog.OneLine(err)}
	}
	if problem := checkReading(m, read, c); problem != nil {
		return m, nil, problem
	}
	return m, read, nil
}

// lineFor returns the line to the session that a message is for.
func (t *talk) lineFor(ctx context.Context, initialize bool, version string) (*talkLine, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, io.ErrClosedPipe
	}
	if t.line != nil && (!initialize || !t.assumed) {
		return t.line, nil
	}
	if t.session != nil { // it began without a handshake: its calls go on, and it ends
		old, line := t.session, t.line
		t.wg.Go(func() {
			_ = old.Close()
			line.drop()
		})
	}
	l := newTalkLine(t)
	revision := ""
	if !initialize && version < catalog.VersionModern {
		revision = t.version
	}
	session, err := t.view.Connect(ctx, l, revision)
	if err != nil {
		return nil, err
	}
	t.session, t.line, t.assumed = session, l, revision != ""
	return l, nil
}

// close ends the session and waits.
func (t *talk) close() {
	t.mu.Lock()
	session, l := t.session, t.line
	t.closed = true // what is posted to a stream may come at any time
	t.mu.Unlock()
	t.news.close()
	if session != nil {
		_ = l.Close()
		_ = session.Close()
	}
	t.wg.Wait()
}

// placesFor returns the places of which a request takes one.
func (t *talk) placesFor(method string) places {
	if method == "tools/call" || method == "subscriptions/listen" {
		return t.calls
	}
	return t.asks
}

// within reports whether the caller may send one request more.
func (t *talk) within(ctx context.Context) bool {
	return !t.metered || t.front.guard.within(catalog.CallerFrom(ctx))
}
