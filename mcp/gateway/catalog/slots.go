package catalog

import "sync"

// Limits on calls that run at the same time.
const (
	MaxCalls    = 512 // of all callers
	maxOwnCalls = 256 // of one token
)

// slots count the calls that run.
type slots struct {
	mu     sync.Mutex
	owned  map[string]int // by token
	calls  map[uint64]running
	number uint64
	closed bool
}

// running is a call that runs.
type running struct {
	who    Caller
	cancel func()
}

// callers returns who has calls that run, of those with accounts.
func (s *slots) callers() (all []Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.who.account() != nil {
			all = append(all, c.who)
		}
	}
	return all
}

// endOf ends the calls with the rights of a token.
func (s *slots) endOf(of *Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.who.account() == of {
			c.cancel()
		}
	}
}

// take takes a place for a call of a caller. cancel ends the call, release gives
// the place back.
func (s *slots) take(who Caller, cancel func()) (release func(), ok bool) {
	token := who.Name()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.calls) >= MaxCalls || token != "" && s.owned[token] >= maxOwnCalls {
		return nil, false
	}
	if s.owned == nil {
		s.owned, s.calls = map[string]int{}, map[uint64]running{}
	}
	s.number++
	number := s.number
	s.calls[number] = running{who, cancel}
	s.owned[token]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, number)
		if s.owned[token]--; s.owned[token] == 0 {
			delete(s.owned, token)
		}
	}, true
}

// closeAll ends all calls. No more are taken.
func (s *slots) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.calls {
		c.cancel()
	}
}
