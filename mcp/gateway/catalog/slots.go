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
	cancel map[uint64]func()
	number uint64
	closed bool
}

// take takes a place for a call of a token. cancel ends the call, release gives
// the place back.
func (s *slots) take(token string, cancel func()) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.cancel) >= MaxCalls || token != "" && s.owned[token] >= maxOwnCalls {
		return nil, false
	}
	if s.owned == nil {
		s.owned, s.cancel = map[string]int{}, map[uint64]func(){}
	}
	s.number++
	number := s.number
	s.cancel[number] = cancel
	s.owned[token]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancel, number)
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
	for _, cancel := range s.cancel {
		cancel()
	}
}
