package gateway

import (
	"net/http"
	"sync"
	"time"
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
	out := plainly(w, asked)
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
