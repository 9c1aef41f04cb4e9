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
	owned  map[catalog.Holder]int  // all places that are taken
	byID   map[string]*httpSession // of the streamable transport
	ends   map[*lasting]struct{}   // streams and sockets
	posts  sync.Map                // where clients of the older SSE transport post: *eventStream by its id
	wg     sync.WaitGroup          // sessions that end because they were idle, or made room
}

func newSessions() *sessions {
	return &sessions{owned: map[catalog.Holder]int{}, byID: map[string]*httpSession{}, ends: map[*lasting]struct{}{}}
}

// httpSession is one session of the streamable transport.
type httpSession struct {
	view  *catalog.View
	leave func() // ends its calls
	using int    // requests and streams that are open
	last  time.Time
}

// lasting is a stream or a socket that is open.
type lasting struct {
	who catalog.Caller
	end func()
}

// reserve takes a place for a holder. Where there is none, the session of that holder
// that was unused for the longest time makes room: clients that come back and never
// end their sessions would lock themselves out. It returns false if there are too
// many.
func (s *sessions) reserve(by catalog.Holder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place(by)
}

// place is reserve for a caller that holds mu.
func (s *sessions) place(by catalog.Holder) bool {
	if s.closed {
		return false
	}
	most := maxOwnSessions
	if by.Person {
		most = maxPersonSessions
	}
	if s.owned[by] >= most || s.held+len(s.byID) >= maxSessions {
		id, idle := s.idlest(by)
		if idle == nil {
			return false
		}
		s.forget(id)
		s.wg.Go(func() { idle.EndSession(id) })
	}
	s.held++
	s.take(by, 1)
	return true
}

// idlest returns the session of a holder that was unused for the longest time, of
// those that are not in use; nil: there is none. The caller holds mu.
func (s *sessions) idlest(by catalog.Holder) (id string, v *catalog.View) {
	var last time.Time
	for key, h := range s.byID {
		if h.using == 0 && h.view.Caller().Holder() == by && (v == nil || h.last.Before(last)) {
			id, v, last = key, h.view, h.last
		}
	}
	return id, v
}

// take counts places of a holder. The caller holds mu.
func (s *sessions) take(by catalog.Holder, places int) {
	if s.owned[by] += places; s.owned[by] == 0 {
		delete(s.owned, by)
	}
}

// forget gives the place of a session back. The caller holds mu.
func (s *sessions) forget(id string) {
	if h := s.byID[id]; h != nil {
		delete(s.byID, id)
		s.take(h.view.Caller().Holder(), -1)
		h.leave()
	}
}

func (s *sessions) release(by catalog.Holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.take(by, -1)
}

// open takes a place for a stream or a socket, which end ends. It returns false if
// there are too many, or the gateway closes.
func (s *sessions) open(who catalog.Caller, end func()) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.place(who.Holder()) {
		return nil, false
	}
	l := &lasting{who, end}
	s.ends[l] = struct{}{}
	return func() {
		s.mu.Lock()
		delete(s.ends, l)
		s.mu.Unlock()
		s.release(who.Holder())
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
	s.take(v.Caller().Holder(), 1)
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

// callers returns those with accounts who have something open.
func (s *sessions) callers() (all []catalog.Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note := func(c catalog.Caller) {
		if c.Token != nil && c.Token.Account != nil {
			all = append(all, c)
		}
	}
	for l := range s.ends {
		note(l.who)
	}
	for _, h := range s.byID {
		note(h.view.Caller())
	}
	return all
}

// endOf ends all that was opened with the rights of a token.
func (s *sessions) endOf(of *catalog.Account) {
	s.mu.Lock()
	var open []*lasting
	for l := range s.ends {
		if l.who.Token != nil && l.who.Token.Account == of {
			open = append(open, l)
		}
	}
	for id, h := range s.byID {
		if c := h.view.Caller(); c.Token != nil && c.Token.Account == of {
			s.forget(id)
			s.wg.Go(func() { h.view.EndSession(id) })
		}
	}
	s.mu.Unlock()
	for _, l := range open {
		l.end()
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
