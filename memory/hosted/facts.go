package hosted

import (
	"context"
	"maps"
	"slices"
	"time"

	"xiaozhi/memory"
	"xiaozhi/providers"
)

// told are the facts of an owner that nobody wants to be forgotten.
func (s *Store) told(o memory.Owner, all []memory.Fact) []memory.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errands[Errand{Owner: o}] {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(f memory.Fact) bool {
		return s.errands[Errand{Owner: o, Fact: f.ID}] || f.Talk != "" && s.errands[Errand{Owner: o, Talk: f.Talk}]
	})
}

// read reads what the service knows of an owner, unless that is being done.
func (s *Store) read(o memory.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading[o] {
		return
	}
	s.reading[o] = true
	s.begin(func() {
		changed, _ := s.readNow(s.ctx, o) // the log tells why not
		s.mu.Lock()
		delete(s.reading, o)
		s.mu.Unlock()
		if changed {
			s.o.Changed(o)
		}
	})
}

// readNow reads what the service knows of an owner, and reports whether that is something else than before.
func (s *Store) readNow(ctx context.Context, o memory.Owner) (changed bool, err error) {
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	for before := s.version(o); ; {
		limited, cancel := context.WithTimeout(ctx, factsTime)
		facts, err := s.o.Service.Facts(limited, o)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				s.o.Log.Warn("a memory service does not tell what it knows", "device_id", o.Device, "provider", s.o.Service.Name(), "err", err)
			}
			return false, err
		}
		if now := s.version(o); now != before { // it was changed meanwhile: what was read may be from before
			before = now
			continue
		}
		for i := range facts {
			facts[i].ID, facts[i].Owner = s.prefix()+facts[i].ID, o
		}
		facts = s.settled(o, facts)
		was, _ := s.facts.Peek(o)
		s.keep(o, facts)
		return was == nil || !slices.EqualFunc(was.facts, facts, func(a, b memory.Fact) bool { return a.ID == b.ID && a.Text == b.Text }), nil
	}
}

// Fresh reads what the service knows of an owner now.
func (s *Store) Fresh(ctx context.Context, o memory.Owner) error {
	changed, err := s.readNow(ctx, o)
	if changed {
		s.o.Changed(o)
	}
	return err
}

// version counts the changes of what is known of an owner.
func (s *Store) version(o memory.Owner) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.recent[o]; r != nil {
		return r.version
	}
	return 0
}

// settled are facts that were read, with what was added lately and without what was deleted.
func (s *Store) settled(o memory.Owner, facts []memory.Fact) []memory.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recent[o]
	if r == nil {
		return facts
	}
	if time.Since(r.at) > settling {
		r.added, r.gone = nil, nil
		return facts
	}
	facts = slices.DeleteFunc(facts, func(f memory.Fact) bool { return r.gone[f.ID] })
	for _, f := range r.added {
		if !slices.ContainsFunc(facts, func(read memory.Fact) bool { return read.ID == f.ID }) {
			facts = append(facts, f)
		}
	}
	return facts
}

// keep keeps what the service knows in memory.
func (s *Store) keep(o memory.Owner, facts []memory.Fact) {
	size := 256
	for i := range facts {
		size += 256 + len(facts[i].Text)
	}
	s.facts.Put(o, &known{facts, time.Now()}, size)
}

// changed changes what is known of an owner in memory: the service was told so.
func (s *Store) changed(o memory.Owner, add *memory.Fact, gone func(f memory.Fact) bool) {
	var facts []memory.Fact
	if of, ok := s.facts.Peek(o); ok {
		facts = slices.Clone(of.facts)
	}
	s.mu.Lock()
	r := s.recent[o]
	if r == nil {
		if len(s.recent) > mostRecent {
			maps.DeleteFunc(s.recent, func(_ memory.Owner, r *recent) bool { return time.Since(r.at) > settling })
		}
		r = &recent{}
		s.recent[o] = r
	}
	if r.gone == nil {
		r.gone = map[string]bool{}
	}
	r.version, r.at = r.version+1, time.Now()
	facts = slices.DeleteFunc(facts, func(f memory.Fact) bool {
		if gone(f) {
			r.gone[f.ID] = true
			return true
		}
		return false
	})
	r.added = slices.DeleteFunc(r.added, gone)
	if add != nil {
		delete(r.gone, add.ID)
		facts, r.added = append(facts, *add), append(r.added, *add)
	}
	s.mu.Unlock()
	s.keep(o, facts)
}

// Finder returns what has the service find facts, for [memory.Options].Find; nil: it cannot.
func (s *Store) Finder() func(ctx context.Context, o memory.Owner, words string) ([]string, error) {
	if finder, ok := s.o.Service.(Searcher); ok {
		return func(ctx context.Context, o memory.Owner, words string) ([]string, error) {
			return s.find(ctx, finder, o, words)
		}
	}
	return nil
}

// Warm gets the service ready for a question that will soon come.
func (s *Store) Warm(ctx context.Context) error {
	if w, ok := s.o.Service.(providers.Warmer); ok {
		return w.Warm(ctx)
	}
	return nil
}

// find has the service find what has to do with words.
func (s *Store) find(ctx context.Context, finder Searcher, o memory.Owner, words string) ([]string, error) {
	ids, err := finder.Search(ctx, o, words, searchMost)
	if err != nil {
		return nil, err
	}
	unknown := false
	of, _ := s.facts.Peek(o)
	for i := range ids {
		ids[i] = s.prefix() + ids[i]
		unknown = unknown || of != nil && !slices.ContainsFunc(of.facts, func(f memory.Fact) bool { return f.ID == ids[i] })
	}
	if unknown { // the service has learned something since
		s.read(o)
	}
	return ids, nil
}
