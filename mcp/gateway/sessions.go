package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// sessions are all that stays open: sessions over HTTP, streams and sockets.
type sessions struct {
	mu     sync.Mutex
	closed bool
	held   int                     // places taken by streams and sockets, and by sessions that are being opened
	owned  map[string]int          // all places that are taken, by token
	byID   map[string]*httpSession // of the streamable transport
	ends   map[*lasting]struct{}   // streams and sockets
	posts  map[string]*eventStream // where clients of the older SSE transport post, by its id
	wg     sync.WaitGroup          // sessions that end because they were idle, or made room
}

// httpSession is one session of the streamable transport.
type httpSession struct {
	view  *view
	leave func() // ends its calls
	using int    // requests and streams that are open
	last  time.Time
}

// lasting is a stream or a socket that is open.
type lasting struct{ end func() }

// reserve takes a place for a token. Where there is none, the session of that
// token that nobody has used for the longest time makes room: clients that come
// back and never say goodbye would lock themselves out. False: there are too many.
func (s *sessions) reserve(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.owned[token] >= maxOwnSessions || s.held+len(s.byID) >= maxSessions {
		id, idle := s.idlest(token)
		if idle == nil {
			return false
		}
		s.forget(id)
		s.wg.Go(func() { idle.end(id) })
	}
	s.held++
	s.take(token, 1)
	return true
}

// idlest is the session of a token that nobody has used for the longest time, of
// those that nobody uses now; nil: there is none. The caller holds mu.
func (s *sessions) idlest(token string) (id string, v *view) {
	var last time.Time
	for key, h := range s.byID {
		if h.using == 0 && h.view.key.token == token && (v == nil || h.last.Before(last)) {
			id, v, last = key, h.view, h.last
		}
	}
	return id, v
}

// take counts places of a token. The caller holds mu.
func (s *sessions) take(token string, places int) {
	if s.owned == nil {
		s.owned = map[string]int{}
	}
	if s.owned[token] += places; s.owned[token] == 0 {
		delete(s.owned, token)
	}
}

// forget gives the place of a session back. The caller holds mu.
func (s *sessions) forget(id string) {
	if h := s.byID[id]; h != nil {
		delete(s.byID, id)
		s.take(h.view.key.token, -1)
		h.leave()
	}
}

func (s *sessions) release(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.take(token, -1)
}

// open takes a place for a stream or a socket; end has it end. False: there are
// too many, or the gateway closes.
func (s *sessions) open(token string, end func()) (done func(), ok bool) {
	if !s.reserve(token) {
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
		delete(s.ends, l)
		s.mu.Unlock()
		s.release(token)
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

// add notes a session that was opened; leave ends its calls.
func (s *sessions) add(id string, v *view, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*httpSession{}
	}
	s.byID[id] = &httpSession{view: v, leave: leave, last: time.Now()}
	s.take(v.key.token, 1)
}

// remove forgets a session of a view, which is about to end, and ends its calls:
// the end of a session waits for them. False: the view has no such session.
func (s *sessions) remove(id string, v *view) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byID[id]
	if h == nil || h.view != v {
		return false
	}
	s.forget(id)
	return true
}

// sweep ends sessions that nobody has used for long.
func (s *sessions) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, h := range s.byID {
		if h.using == 0 && time.Since(h.last) > sessionIdle {
			s.forget(id)
			s.wg.Go(func() { h.view.end(id) })
		}
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
	noEvents := false
	if m != nil {
		asked = *m
		noEvents = !acceptsEvents(r)
		acceptAll(r)
	}
	out := plainly(w, asked)
	out.noEvents = noEvents
	if id == "" {
		if !g.sessions.reserve(v.key.token) {
			w.Header().Set("Retry-After", "10")
			reply(w, http.StatusServiceUnavailable, rpcError{"2.0", idOf(asked), rpcProblem{
				codeRefused,
				say(callerFrom(r.Context()).language, "会话太多", "too many sessions"),
			}})
			return
		}
		defer g.sessions.release(v.key.token)
		r = g.opening(r, v, out)
	}
	defer g.sessions.use(id)()
	defer out.stop()
	switch r.Method {
	case http.MethodGet:
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		out.lasts(cancel)
	case http.MethodDelete:
		if g.sessions.remove(id, v) {
			v.end(id)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	v.stateful.ServeHTTP(out, r)
}

// opening has a session that r opens noted before its client knows of it. Its
// calls end with it.
func (g *Gateway) opening(r *http.Request, v *view, out *plainWriter) *http.Request {
	ctx, leave := context.WithCancel(context.WithoutCancel(r.Context())) // it outlives its first request
	out.before = func(header http.Header) {
		if id := header.Get(headerSession); id != "" {
			g.sessions.add(id, v, leave)
		} else {
			leave()
		}
	}
	return r.WithContext(withCaller(r.Context(), callerFrom(r.Context()).until(ctx)))
}
