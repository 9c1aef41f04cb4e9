package gateway

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/gateway/catalog"
)

// eventStream is an answer of server-sent events that stays open.
type eventStream struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	receive func(data []byte) error // takes what the client posts; nil: nothing can be posted
	who     string                  // the token that opened it

	mu     sync.Mutex
	closed bool
	over   chan struct{} // closed by end
}

// serveEvents serves /api/mcp/connect: the older SSE transport for clients that
// accept event streams, a plain stream of objects for others (docs/mcp.md 6).
func (f *front) serveEvents(w http.ResponseWriter, r *http.Request, c catalog.Caller) {
	c.Via = "sse"
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		f.postEvent(w, r, c)
		return
	default:
		w.Header().Set("Allow", "GET, POST")
		problem(w, r, http.StatusMethodNotAllowed, codeMethod, c.Say("gateway/http-method"))
		return
	}
	asked := r.URL.Query()
	stream, token := asked.Get("stream"), asked.Get("token")
	v, ok := f.views.Of(c, stream)
	if !ok {
		noStream(w, r, c, stream)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &eventStream{w: w, rc: http.NewResponseController(w), who: c.Name(), over: make(chan struct{})}
	done, ok := f.sessions.open(c, s.end)
	if !ok {
		noRoom(w, r, c, rpcMessage{})
		return
	}
	defer done()
	defer s.end()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Connection", "keep-alive")
	w.Header().Set("X-Accel-Buffering", "no")
	if asked.Get("legacy") == "1" || !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		s.plain(ctx)
		return
	}
	t := newTalk(f, v, s, r.Header)
	called := catalog.WithCaller(ctx, c.Until(ctx))
	s.receive = func(data []byte) error { return t.receive(called, data) }
	id := rand.Text()
	f.sessions.posts.Store(id, s)
	defer f.sessions.posts.Delete(id)
	defer t.close()
	defer cancel() // the running calls go with the stream
	query := "?sessionid=" + id
	if stream != "" {
		query += "&stream=" + url.QueryEscape(stream)
	}
	if token != "" && r.Header.Get("Authorization") == "" {
		query += "&token=" + url.QueryEscape(token)
	}
	if s.event("endpoint", []byte(pathConnect+query)) != nil {
		return
	}
	s.keep(ctx, func() error { return s.write([]byte(": ping\n\n")) })
}

// plain writes a stream of objects, in the same words whatever the language.
func (s *eventStream) plain(ctx context.Context) {
	if s.event("", []byte(`{"type":"connected","message":"`+message.In(text.Chinese, "gateway/connected")+`"}`)) == nil {
		s.keep(ctx, func() error {
			return s.event("", []byte(`{"type":"ping","timestamp":`+strconv.FormatInt(time.Now().UnixMilli(), 10)+`}`))
		})
	}
}

func (s *eventStream) keep(ctx context.Context, ping func() error) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.over:
			return
		case <-ticker.C:
			if ping() != nil {
				return
			}
		}
	}
}

// postEvent takes a message for a stream that is open.
func (f *front) postEvent(w http.ResponseWriter, r *http.Request, c catalog.Caller) {
	refuse := func(status int, code int64, why string) {
		replyRaw(w, status, rpcFailure(rpcMessage{}, problemOf(code, why)))
	}
	found, _ := f.sessions.posts.Load(r.URL.Query().Get("sessionid"))
	s, ok := found.(*eventStream)
	if !ok || s.who != c.Name() {
		refuse(http.StatusNotFound, codeNoSession, c.Say("gateway/session-unknown"))
		return
	}
	body, status, wrong := f.readBody(w, r, c)
	if wrong != "" {
		refuse(status, jsonrpc.CodeInvalidRequest, wrong)
		return
	}
	if err := s.receive(body); err != nil {
		refuse(http.StatusNotFound, codeNoSession, c.Say("gateway/session-over"))
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (s *eventStream) send(data []byte) error { return s.event("message", data) }

// event writes one event; data has no line breaks.
func (s *eventStream) event(name string, data []byte) error {
	var lines []byte
	if name != "" {
		lines = append(lines, "event: "+name+"\n"...)
	}
	lines = append(lines, "data: "...)
	lines = append(lines, data...)
	return s.write(append(lines, "\n\n"...))
}

func (s *eventStream) write(lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errWireClosed
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTime)) // recorders have none
	if _, err := s.w.Write(lines); err != nil {
		return err
	}
	err := s.rc.Flush()
	_ = s.rc.SetWriteDeadline(time.Time{}) // by HTTP/2 it would end a stream that has nothing to tell
	return err
}

func (s *eventStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.over)
	}
}
