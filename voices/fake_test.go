package voices_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/voices"
)

// store keeps people in memory.
type store struct {
	mu   sync.Mutex
	kept voices.Kept
	fail error // of what changes anything
}

func (s *store) change(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.kept.Changes++
	return f()
}

func (s *store) Load(context.Context) (voices.Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept
	k.People, k.Voices, k.Removals = slices.Clone(k.People), slices.Clone(k.Voices), slices.Clone(k.Removals)
	return k, nil
}

func (s *store) Changes(context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.Changes, nil
}

func (s *store) at(id string) int {
	return slices.IndexFunc(s.kept.People, func(p voices.Person) bool { return p.ID == id })
}

func (s *store) Add(_ context.Context, p voices.Person) error {
	return s.change(func() error {
		if slices.ContainsFunc(s.kept.People, func(o voices.Person) bool { return strings.EqualFold(o.Name, p.Name) }) {
			return voices.ErrTaken
		}
		s.kept.People = append(s.kept.People, p)
		return nil
	})
}

func (s *store) Edit(_ context.Context, p voices.Person) error {
	return s.change(func() error {
		i := s.at(p.ID)
		if i < 0 {
			return voices.ErrNobody
		}
		s.kept.People[i].Name, s.kept.People[i].Account = p.Name, p.Account
		return nil
	})
}

// drop deletes voices, and notes what a service is to forget of them.
func (s *store) drop(which func(voices.Voice) bool) {
	s.kept.Voices = slices.DeleteFunc(s.kept.Voices, func(v voices.Voice) bool {
		if which(v) && v.Print.Data == nil {
			s.kept.Removals = append(s.kept.Removals, voices.Removal{ID: v.Print.ID, Service: v.Service, At: time.Now(), Next: time.Now()})
		}
		return which(v)
	})
}

func (s *store) Delete(_ context.Context, id string, _ bool) error {
	return s.change(func() error {
		i := s.at(id)
		if i < 0 {
			return voices.ErrNobody
		}
		s.kept.People = slices.Delete(s.kept.People, i, i+1)
		s.drop(func(v voices.Voice) bool { return v.Print.Person == id })
		return nil
	})
}

func (s *store) Begin(_ context.Context, r voices.Removal) error {
	return s.change(func() error {
		s.kept.Removals = append(s.kept.Removals, r)
		return nil
	})
}

func (s *store) AddVoice(_ context.Context, v voices.Voice, _ int) error {
	return s.change(func() error {
		if s.at(v.Print.Person) < 0 {
			return voices.ErrNobody
		}
		s.kept.Removals = slices.DeleteFunc(s.kept.Removals, func(r voices.Removal) bool { return r.ID == v.Print.ID })
		s.kept.Voices = append(s.kept.Voices, v)
		return nil
	})
}

func (s *store) DeleteVoice(_ context.Context, person, id string) error {
	return s.change(func() error {
		n := len(s.kept.Voices)
		s.drop(func(v voices.Voice) bool { return v.Print.Person == person && v.Print.ID == id })
		if len(s.kept.Voices) == n {
			return voices.ErrNobody
		}
		return nil
	})
}

func (s *store) Removed(_ context.Context, id string) error {
	return s.change(func() error {
		s.kept.Removals = slices.DeleteFunc(s.kept.Removals, func(r voices.Removal) bool { return r.ID == id })
		return nil
	})
}

func (s *store) NotRemoved(_ context.Context, id, fault string, next time.Time) error {
	return s.change(func() error {
		for i := range s.kept.Removals {
			if r := &s.kept.Removals[i]; r.ID == id {
				r.Fault, r.Next, r.Tries = fault, next, r.Tries+1
			}
		}
		return nil
	})
}

// home is a book with an engine, in a bubble.
type home struct {
	*voices.Book
	store  *store
	engine *providertest.Voiceprint
	off    atomic.Bool
	made   atomic.Int64 // engines that were made for a removal
}

// open opens a book over a store, nil: an empty one, whose engine keeps the prints or does not.
func open(t *testing.T, s *store, keeps bool) *home {
	t.Helper()
	if s == nil {
		s = &store{}
	}
	return openWith(t, s, &providertest.Voiceprint{Keeps: keeps})
}

func openWith(t *testing.T, s *store, engine *providertest.Voiceprint) *home {
	t.Helper()
	h := &home{store: s, engine: engine}
	n := 0
	b, err := voices.Open(t.Context(), voices.Options{
		Store: s, NewID: func() string { n++; return fmt.Sprintf("id-%d", n) },
		Engine: func() providers.Voiceprint {
			if h.off.Load() {
				return nil
			}
			return h.engine
		},
		Service: func(_ context.Context, name string) (providers.Voiceprint, func(), error) {
			if name != h.engine.Name() {
				return nil, nil, fmt.Errorf("no section %s", name)
			}
			h.made.Add(1)
			return h.engine, func() {}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	h.Book = b
	return h
}

// enrolled adds a person with a voice of a pitch.
func (h *home) enrolled(t *testing.T, name string, pitch float64) voices.Person {
	t.Helper()
	p, err := h.Add(t.Context(), name, "", "owner")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Enrol(t.Context(), p.ID, voices.Browser, "", providertest.VoiceOf(pitch, 3*time.Second)); err != nil {
		t.Fatalf("enrol %s: %v", name, err)
	}
	return p
}
