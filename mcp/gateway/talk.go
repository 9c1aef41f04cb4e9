package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
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

	news *pump // messages that no client has asked for, and that go to many: a slow reader keeps them from nobody

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
	t := &talk{front: f, view: v, wire: w, version: version, calls: make(places, maxCalls), asks: make(places, maxAsks)}
	t.news = newPump(w.end, w.send, nil)
	return t
}

// receive takes one message from the wire. What cannot be read is answered; the
// error is one of the wire. ctx is that of the connection and carries the caller.
func (t *talk) receive(ctx context.Context, data []byte) error {
	m, read, problem := t.read(ctx, data)
	if problem != nil {
		return t.wire.send(rpcFailure(m, problem))
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
	c, room := catalog.CallerFrom(ctx), t.asks
	if request.Method == "tools/call" || request.Method == "subscriptions/listen" {
		room = t.calls
	}
	switch {
	case !t.within(ctx):
		return rpcFailure(m, problemOf(catalog.CodeRefused, c.Say("gateway/too-many-requests")))
	case !room.take(ctx):
		return rpcFailure(m, problemOf(catalog.CodeRefused, c.Say("gateway/requests-at-once")))
	case !l.ask(request.ID, room):
		room.free()
		used := problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/id-in-use", catalog.Clip(string(m.ID))))
		return rpcFailure(rpcMessage{}, used) // with its id it would answer the other one
	}
	return nil
}

// read reads one message, or says what is wrong with it.
func (t *talk) read(ctx context.Context, data []byte) (m rpcMessage, read jsonrpc.Message, problem *jsonrpc.Error) {
	c := catalog.CallerFrom(ctx)
	if deep(data) {
		return m, nil, problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/nested"))
	}
	if m, problem = readMessage(data, c); problem == nil {
		problem = checkID(m.ID, c)
	}
	if problem == nil && m.Method != nil {
		problem = checkMethod(m, c)
	}
	if problem != nil {
		return m, nil, problem
	}
	read, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return m, nil, problemOf(jsonrpc.CodeInvalidRequest, catalog.OneLine(err))
	}
	return m, read, checkReading(m, read, c)
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
	t.news.lost.Store(true) // what is left is not sent
	t.news.stop()
	if session != nil {
		_ = l.Close()
		_ = session.Close()
	}
	t.wg.Wait()
}

// within reports whether the caller may send one request more.
func (t *talk) within(ctx context.Context) bool {
	return !t.metered || t.front.guard.within(catalog.CallerFrom(ctx))
}

// talkLine is the line to one session of a talk. It knows the requests that are
// under way: the SDK would take any number, and lose one whose id is in use.
type talkLine struct {
	*catalog.Pipe
	talk *talk

	mu    sync.Mutex
	asked map[jsonrpc.ID]asked
}

// asked is a request that is under way.
type asked struct {
	place     places // where it has one
	cancelled bool   // the client does not wait for the answer any more
}

func newTalkLine(t *talk) *talkLine {
	l := &talkLine{talk: t, asked: map[jsonrpc.ID]asked{}}
	l.Pipe = catalog.NewPipe(l.send)
	return l
}

// ask notes a request, which has taken a place. False: its id is in use.
func (l *talkLine) ask(id jsonrpc.ID, place places) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, used := l.asked[id]; used {
		return false
	}
	l.asked[id] = asked{place: place}
	return true
}

// cancel notes that a request was taken back, whose answer is not sent (MCP
// 2025-11-25, cancellation: clients take one for a mistake). One that has been
// answered is unknown, as it may be: the two cross.
func (l *talkLine) cancel(params json.RawMessage) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, used := l.asked[id]; used {
		a.cancelled = true
		l.asked[id] = a
	}
}

// answered frees the id of a request that is about to be answered. place is where it
// has one. wanted reports whether the client still waits for the answer.
func (l *talkLine) answered(id jsonrpc.ID) (place places, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.asked[id]
	delete(l.asked, id)
	return a.place, !a.cancelled
}

// drop gives the places of all requests back, which will not be answered.
func (l *talkLine) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.asked {
		a.place.free()
	}
	clear(l.asked)
}

func (l *talkLine) send(m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *jsonrpc.Response:
		place, wanted := l.answered(m.ID) // the client may use the id again as soon as it has the answer
		if place != nil {
			defer place.free() // not sooner: the answer may be long
		}
		if !wanted {
			return nil
		}
	case *jsonrpc.Request:
		toMany := strings.HasSuffix(m.Method, "/list_changed") || m.Method == "notifications/resources/updated"
		if toMany && !m.IsCall() {
			return l.talk.news.write(data)
		}
	}
	return l.talk.wire.send(data)
}

// places are places for requests that are under way.
type places chan struct{}

// take takes a place, or waits a moment for one. False: there is none.
func (p places) take(ctx context.Context) bool {
	select {
	case p <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(placeTime)
	defer timer.Stop()
	select {
	case p <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (p places) free() { <-p }
