package settings

import (
	"sync"
	"time"

	"xiaozhi/internal/account"
)

// waiting holds plans for those who look at them. Its methods may be called at the same time.
type waiting struct {
	mu    sync.Mutex
	plans map[string]*planned
}

// keep holds a plan, in the place of the oldest if there are too many.
func (s *waiting) keep(p *planned) {
	s.mu.Lock()
	var oldest *planned
	if len(s.plans) >= maxPlans {
		for _, other := range s.plans {
			if oldest == nil || other.At.Before(oldest.At) {
				oldest = other
			}
		}
		delete(s.plans, oldest.ID)
	}
	s.plans[p.ID] = p
	p.ends = time.AfterFunc(planTime, func() {
		if p := s.take(p.By, p.ID); p != nil {
			p.drop()
		}
	})
	s.mu.Unlock()
	if oldest != nil {
		oldest.drop()
	}
}

// look returns a plan of somebody; nil: there is none.
func (s *waiting) look(by, id string) *planned {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.plans[id]; p != nil && p.By == by {
		return p
	}
	return nil
}

// take is look, after which nobody else has the plan.
func (s *waiting) take(by, id string) *planned {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.plans[id]
	if p == nil || p.By != by {
		return nil
	}
	delete(s.plans, id)
	p.ends.Stop()
	return p
}

// clear throws all plans away.
func (s *waiting) clear() {
	s.mu.Lock()
	plans := s.plans
	s.plans = map[string]*planned{}
	s.mu.Unlock()
	for _, p := range plans {
		p.drop()
	}
}

// Planned returns a plan of somebody.
func (s *Settings) Planned(by account.Person, id string) (*Plan, error) {
	p := s.waiting.look(by.Name, id)
	if p == nil {
		return nil, ErrNoPlan
	}
	shown := p.Plan
	return &shown, nil
}

// Drop throws a plan away.
func (s *Settings) Drop(by account.Person, id string) error {
	p := s.waiting.take(by.Name, id)
	if p == nil {
		return ErrNoPlan
	}
	p.drop()
	return nil
}
