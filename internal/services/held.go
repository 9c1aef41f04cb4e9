package services

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"
)

// Secrets that were typed and are not saved yet.
const (
	heldTime = 15 * time.Minute
	maxHeld  = 32
)

// held keeps secrets that somebody has typed into a form which is shown again: they are never sent back to the browser.
type held struct {
	mu  sync.Mutex
	all []heldDraft
}

type heldDraft struct {
	id, person, name, kind, address string
	secrets                         map[string]string
	until                           time.Time
}

// Hold keeps the secrets of a draft for the same person, service and host, and returns by what they are found again; ""
// if there are none.
func (s *Services) Hold(person string, d Draft) string {
	one := heldDraft{id: rand.Text(), person: person, name: d.Name, kind: d.Type, address: s.addressOfDraft(d), secrets: map[string]string{}, until: time.Now().Add(heldTime)}
	k, _ := KindOf(d.Type)
	for _, f := range fieldsOf(k, s.sectionOf(d)) {
		if v := d.Typed[f.Key]; f.Input == Secret && v != "" {
			one.secrets[f.Key] = v
		}
	}
	if len(one.secrets) == 0 {
		return ""
	}
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	s.held.tidy()
	s.held.all = append(s.held.all, one)
	if len(s.held.all) > maxHeld {
		s.held.all = slices.Delete(s.held.all, 0, 1)
	}
	return one.id
}

// Held puts secrets that were held into a draft, where nothing was typed in their place, and returns their keys.
func (s *Services) Held(person, id string, d *Draft) (keys []string) {
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	s.held.tidy()
	i := slices.IndexFunc(s.held.all, func(h heldDraft) bool { return h.id == id && h.person == person })
	if i < 0 {
		return nil
	}
	h := s.held.all[i]
	if h.kind != d.Type || h.name != d.Name && !d.New || h.address != s.addressOfDraft(*d) {
		return nil
	}
	for key, v := range h.secrets {
		if d.Typed[key] == "" {
			d.Typed[key] = v
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (h *held) tidy() {
	now := time.Now()
	h.all = slices.DeleteFunc(h.all, func(d heldDraft) bool { return now.After(d.until) })
}
