package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// sessions are all that stays open: sessions over HTTP, streams and sockets.
type sessions struct {
	mu     sync.Mutex
	closed bool
	held   int                     // places taken by streams and sockets
	byID   map[string]*httpSession // of the streamable transport
	ends   map[*lasting]struct{}   // streams and sockets
	posts  map[string]*eventStream // where clients of the older SSE transport post, by its id
}

// httpSession is one session of the streamable transport.
type httpSession struct {
	view  *view
	using int // requests and streams that are open
	last  time.Time
}

// lasting is a stream or a socket that is open.
type lasting struct{ end func() }

// reserve takes a place for a session. False: there are too many.
func (s *sessions) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.held+len(s.byID) >= maxSessions {
		return false
	}
	s.held++
	return true
}

func (s *sessions) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
}

// open takes a place for a stream or a socket; end has it end. False: there are
// too many, or the gateway closes.
func (s *sessions) open(end func()) (done func(), ok bool) {
	if !s.reserve() {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		s.ends = map[*lasting]struct{}{}
	}
	l := &lasting{end}
	s.ends[l] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held--
		delete(s.ends, l)
	}, true
}

// use notes that a session is in use until done is called.
func (s *sessions) use(id string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byID[id]
	if h == nil {
		return func() {}
	}
	h.using++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.using--
		h.last = time.Now()
	}
}

// add notes a session that was opened.
func (s *sessions) add(id string, v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*httpSession{}
	}
	s.byID[id] = &httpSession{view: v, last: time.Now()}
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// sweep ends sessions that nobody has used for long.
func (s *sessions) sweep() {
	s.mu.Lock()
	old := map[string]*view{}
	for id, h := range s.byID {
		if h.using == 0 && time.Since(h.last) > sessionIdle {
			old[id] = h.view
			delete(s.byID, id)
		}
	}
	s.mu.Unlock()
	for id, v := range old {
		v.end(id)
	}
}

// closeAll ends everything. Nothing can be opened any more.
func (s *sessions) closeAll() {
	s.mu.Lock()
	s.closed = true
	open := s.ends
	s.ends = nil
	s.mu.Unlock()
	for l := range open {
		l.end()
	}
}

// end closes a session of the view.
func (v *view) end(id string) {
	for session := range v.server.Sessions() {
		if session.ID() == id {
			_ = session.Close()
		}
	}
}

// stateful serves a request of a session, or opens one. m is nil for GET and DELETE.
func (g *Gateway) stateful(w http.ResponseWriter, r *http.Request, v *view, m *rpcMessage) {
	id := r.Header.Get(headerSession)
	var asked rpcMessage
	if m != nil {
		asked = *m
		acceptAll(r)
	}
	if id == "" {
		if !g.sessions.reserve() {
			w.Header().Set("Retry-After", "10")
			reply(w, http.StatusServiceUnavailable, rpcError{"2.0", idOf(asked), rpcProblem{
				codeRefused,
				say(callerFrom(r.Context()).language, "会话太多", "too many sessions"),
			}})
			return
		}
		defer g.sessions.release()
	}
	defer g.sessions.use(id)()
	out := g.plainly(w, asked)
	defer out.stop()
	if r.Method == http.MethodGet {
		out.pings()
	}
	v.stateful.ServeHTTP(out, r)
	switch opened := w.Header().Get(headerSession); {
	case r.Method == http.MethodDelete && out.status == http.StatusNoContent:
		g.sessions.remove(id)
	case id == "" && opened != "":
		g.sessions.add(opened, v)
	}
}

// plainWriter turns the SDK's errors in plain text into JSON-RPC, has each write
// end in time, and keeps streams open by comments.
type plainWriter struct {
	http.ResponseWriter
	rc     *http.ResponseController
	asked  rpcMessage
	status int

	mu      sync.Mutex
	text    bool // the body is an error in plain text
	stopped bool
	ticker  *time.Ticker
	done    chan struct{}
	wg      sync.WaitGroup
}

func (g *Gateway) plainly(w http.ResponseWriter, asked rpcMessage) *plainWriter {
	return &plainWriter{ResponseWriter: w, rc: http.NewResponseController(w), asked: asked, done: make(chan struct{})}
}

// WriteHeader notes whether an error in plain text follows.
func (p *plainWriter) WriteHeader(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == 0 {
		p.status = status
	}
	if status >= 400 && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.text = true
		p.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write writes, in time.
func (p *plainWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == 0 {
		p.status = http.StatusOK
	}
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTime)) // recorders have none
	if p.text {
		code := jsonrpc.CodeInvalidRequest
		if p.status == http.StatusNotFound {
			code = codeNoSession
		}
		data, err := json.Marshal(rpcError{"2.0", idOf(p.asked), rpcProblem{code, strings.TrimSpace(string(b))}})
		if err != nil {
			return 0, err
		}
		if _, err := p.ResponseWriter.Write(data); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return p.ResponseWriter.Write(b)
}

// codeNoSession is the code that clients know for a session that is not there.
const codeNoSession = -32001

// Flush sends what is written.
func (p *plainWriter) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.rc.Flush()
}

// pings writes a comment now and then, once a stream has begun, until stop.
func (p *plainWriter) pings() {
	p.ticker = time.NewTicker(pingEvery)
	p.wg.Go(func() {
		for {
			select {
			case <-p.done:
				return
			case <-p.ticker.C:
				p.ping()
			}
		}
	})
}

func (p *plainWriter) ping() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.status != http.StatusOK {
		return
	}
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTime))
	_, _ = p.ResponseWriter.Write([]byte(": ping\n\n")) // the next write of the SDK tells of it
	_ = p.rc.Flush()
}

// stop ends the comments. The handler calls it before it returns.
func (p *plainWriter) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	if p.ticker != nil {
		p.ticker.Stop()
		close(p.done)
		p.wg.Wait()
	}
	_ = p.rc.SetWriteDeadline(time.Time{}) // the connection may serve further requests
}
