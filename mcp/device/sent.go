package device

import "sync"

type sentKey struct{}

// sentCall is one tools/call on its way to the wire. It travels in the context,
// since only the link learns the id under which the device knows the call.
type sentCall struct {
	mu        sync.Mutex
	id        int64 // on the wire; 0 until it is about to be sent
	abandoned bool
}

// sending notes the id; false: the call was given up before, and is not to be sent.
func (s *sentCall) sending(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
	return !s.abandoned
}

// abandon gives the call up and returns its id, 0 if it was not sent yet.
func (s *sentCall) abandon() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	return s.id
}
