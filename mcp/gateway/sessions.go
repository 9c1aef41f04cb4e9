package gateway

import (
	"maps"
	"slices"
	"sync"
	"time"

	"xiaozhi/mcp/gateway/catalog"
)

// sessions holds all that stays open: sessions over HTTP, streams and sockets. Its
// methods may be called at the same time.
type sessions struct {
	mu     sync.Mutex
	closed bool
	held   int                     // places taken by streams and sockets, and by sessions that are being opened
	owned  map[string]int          // all places that are taken, by token
	byID   map[string]*httpSession // of the streamable transport
	ends   map[*lasting]struct{}   // streams and sockets
	posts  sync.Map                // where clients of the older SSE transport post: *eventStream by its id
	wg     sync.WaitGroup          // sessions that end because they were idle, or made room
}

func newSessions() *sessions {
	return &sessions{owned: map[string]int{}, byID: map[string]*httpSession{}, ends: map[*lasting]struct{}{}}
}

// httpSession is one session of the streamable transport.
type httpSession struct {
	view  *catalog.View
	leave func() // ends its calls
	using int    // requests and streams that are open
	last  time.Time
}

// lasting is a stream or a socket that is open.
type lasting struct{ end func() }

// reserve takes a place for a token. Where there is none, the session of that token
// that was unused for the longest time makes room: clients that come back and never
// end their sessions would lock themselves out. It returns false if there are too
// many.
func (s *sessions) reserve(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place(token)
}

// place is reserve for a caller that holds mu.
func (s *sessions) place(token string) bool {
	if s.closed {
		return false
	}
	if s.owned[token] >= maxOwnSessions || s.held+len(s.byID) >= maxSessions {
		id, idle := s.idlest(token)
		if idle == nil {
			return false
		}
		s.forget(id)
		s.wg.Go(func() { idle.EndSession(id) })
	}
	s.held++
	s.take(token, 1)
	return true
}

// idlest returns the session of a token that was unused for the longest time, of
// those that are not in use; nil: there is none. The caller holds mu.
func (s *sessions) idlest(token string) (id string, v *catalog.View) {
	var last time.Time
	for key, h := range s.byID {
		if h.using == 0 && h.view.Token() == token && (v == nil || h.last.Before(last)) {
			id, v, last = key, h.view, h.last
		}
	}
	return id, v
}

// take counts places of a token. The caller holds mu.
func (s *sessions) take(token string, places int) {
	if s.owned[token] += places; s.owned[token] == 0 {
		delete(s.owned, token)
	}
}

// forget gives the place of a session back. The caller holds mu.
func (s *sessions) forget(id string) {
	if h := s.byID[id]; h != nil {
		delete(s.byID, id)
		s.take(h.view.Token(), -1)
		h.leave()
	}
}

func (s *sessions) release(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.take(token, -1)
}

// open takes a place for a stream or a socket, which end ends. It returns false if
// there are too many, or the gateway closes.
func (s *sessions) open(token string, end func()) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.place(token) {
		return nil, false
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
func (s *sessions) add(id string, v *catalog.View, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[id] = &httpSession{view: v, leave: leave, last: time.Now()}
	s.take(v.Token(), 1)
}

// remove forgets a session of a view, which is about to end, and ends its calls:
// the end of a session waits for them. It returns false if the view has none.
func (s *sessions) remove(id string, v *catalog.View) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byID[id]
	if h == nil || h.view != v {
		return false
	}
	s.forget(id)
	return true
}

func (s *sessions) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, h := range s.byID {
		if h.using == 0 && time.Since(h.last) > sessionIdle {
			s.forget(id)
			s.wg.Go(func() { h.view.EndSession(id) })
		}
	}
}

// closeAll ends everything. Nothing can be opened any more.
func (s *sessions) closeAll() {
	s.mu.Lock()
	s.closed = true
	open := slices.Collect(maps.Keys(s.ends))
	s.mu.Unlock()
	for _, l := range open {
		l.end()
	}
}
