package hosted

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"xiaozhi/memory"
)

// Forget implements [memory.Store].
func (s *Store) Forget(ctx context.Context, o memory.Owner, ids []string) error {
	var errs []error
	service := false
	for _, id := range ids {
		if _, ok := s.own(id); ok {
			service = true
			errs = append(errs, s.want(ctx, Errand{Owner: o, Fact: id}))
		}
	}
	here := s.Desk.Forget(ctx, o, ids) // and what they have replaced
	if service && errors.Is(here, memory.ErrUnknown) {
		here = nil
	}
	return errors.Join(append(errs, here)...)
}

// ForgetAll implements [memory.Store].
func (s *Store) ForgetAll(ctx context.Context, o memory.Owner) (facts int, err error) {
	all, facts, err := s.wantAll(ctx, o)
	if err != nil {
		return 0, err
	}
	here, err := s.Desk.ForgetAll(ctx, o)
	for _, e := range all {
		err = errors.Join(err, s.run(ctx, e))
	}
	return facts + here, err
}

// wantAll notes that the service has to delete all of an owner, and returns what that is and how many facts are told no more.
func (s *Store) wantAll(ctx context.Context, o memory.Owner) (all []Errand, facts int, err error) {
	s.asking.Lock()
	defer s.asking.Unlock()
	before, err := s.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	if err := s.Want(ctx, s.o.Service.Name(), Errand{Owner: o}); err != nil { // it is done, whatever happens
		return nil, 0, err
	}
	if all, err = s.open(ctx); err != nil {
		return nil, 0, err
	}
	all = slices.DeleteFunc(all, func(e Errand) bool {
		return e.Fact+e.Talk != "" || e.Owner.Device != o.Device || o.Agent != "" && e.Owner.Agent != o.Agent
	})
	for _, e := range all {
		if !slices.Contains(before, e) {
			facts += len(s.told(e.Owner, s.factsOf(ctx, e.Owner)))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range all {
		s.errands[e] = true
	}
	return all, facts, nil
}

// factsOf returns what the service knows of an owner, as it was read; if it was not, it is asked.
func (s *Store) factsOf(ctx context.Context, o memory.Owner) []memory.Fact {
	if of, ok := s.facts.Peek(o); ok {
		return of.facts
	}
	ctx, cancel := context.WithTimeout(ctx, wantTime)
	defer cancel()
	facts, err := s.o.Service.Facts(ctx, o)
	if err != nil {
		s.o.Log.Warn("a memory service does not tell what it knows", "device_id", o.Device, "provider", s.o.Service.Name(), "err", err)
	}
	return facts
}

// Forgotten says that a device was forgotten: the service is to forget it, too. The error may be [memory.ErrLater].
func (s *Store) Forgotten(ctx context.Context, device string) error {
	_, err := s.ForgetAll(ctx, memory.Owner{Device: device})
	return err
}

func (s *Store) open(ctx context.Context) ([]Errand, error) {
	return s.Errands(ctx, s.o.Service.Name())
}

// want notes an errand, and has it done. What it is about is told to nobody from now on.
func (s *Store) want(ctx context.Context, e Errand) error {
	if err := s.Want(ctx, s.o.Service.Name(), e); err != nil {
		return err
	}
	s.mu.Lock()
	s.errands[e] = true
	s.mu.Unlock()
	return s.run(ctx, e)
}

// run has the service do an errand now; the error is [memory.ErrLater] if it cannot: the worker asks it again.
func (s *Store) run(ctx context.Context, e Errand) error {
	limited, cancel := context.WithTimeout(ctx, wantTime)
	defer cancel()
	if err := s.do(limited, e); err != nil {
		s.o.Log.Warn("a memory service has not deleted what it is to forget yet", "device_id", e.Owner.Device, "provider", s.o.Service.Name(), "err", err)
		s.Wake()
		return memory.ErrLater
	}
	return nil
}

// do has the service delete something, unless that was done.
func (s *Store) do(ctx context.Context, e Errand) (err error) {
	select {
	case s.doing <- struct{}{}:
		defer func() { <-s.doing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !s.isOpen(e) {
		return nil // somebody has done it meanwhile
	}
	switch {
	case e.Fact != "":
		id, _ := s.own(e.Fact)
		f := memory.Fact{ID: id, Owner: e.Owner}
		if of, ok := s.facts.Peek(e.Owner); ok {
			if i := slices.IndexFunc(of.facts, func(f memory.Fact) bool { return f.ID == e.Fact }); i >= 0 {
				f = of.facts[i]
				f.ID = id
			}
		}
		err = s.o.Service.Forget(ctx, e.Owner, f)
	case e.Talk != "":
		if err = s.o.Service.ForgetTalk(ctx, e.Owner, e.Talk); errors.Is(err, ErrNoTalks) {
			err = nil
		}
	default:
		err = s.o.Service.ForgetAll(ctx, e.Owner)
	}
	if err != nil {
		return err
	}
	if e.Fact == "" && s.givenLately(e.Owner.Device) {
		return errWorking // what comes of that is deleted then
	}
	s.changed(e.Owner, nil, func(f memory.Fact) bool {
		return f.ID == e.Fact || e.Talk != "" && f.Talk == e.Talk || e.Fact+e.Talk == ""
	})
	s.asking.Lock()
	defer s.asking.Unlock()
	if err := s.Done(ctx, s.o.Service.Name(), e); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.errands, e)
	return nil
}

var errWorking = errors.New("it is still working off a talk that it was given")

// giving says until when the service may be working off talks of a device; zero: it is not.
func (s *Store) giving(device string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.given, func(_ string, end time.Time) bool { return now.After(end) })
	if s.given[device] = until; until.IsZero() {
		delete(s.given, device)
	}
}

func (s *Store) givenLately(device string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.given[device])
}
