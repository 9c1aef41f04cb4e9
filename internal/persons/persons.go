// Package persons keeps the people who are known by their voices in the store.
package persons

import (
	"context"
	"errors"
	"time"

	"xiaozhi/providers"
	"xiaozhi/store"
	"xiaozhi/voices"
)

// Stored keeps people in the tables of the store. Its methods may be called at any time.
type Stored struct{ table *store.People }

var _ voices.Store = Stored{}

// New returns what keeps people in these tables.
func New(table *store.People) Stored { return Stored{table} }

// Load implements [voices.Store].
func (s Stored) Load(ctx context.Context) (k voices.Kept, err error) {
	if k.Changes, err = s.table.Changes(ctx); err != nil {
		return k, err
	}
	people, prints, removals, err := s.table.List(ctx)
	for _, p := range people {
		k.People = append(k.People, voices.Person{ID: p.ID, Name: p.Name, Account: p.UserID, By: p.ByName, At: p.At})
	}
	for _, v := range prints {
		k.Voices = append(k.Voices, voices.Voice{
			Print:   providers.Print{ID: v.ID, Person: v.PersonID, Model: v.Model, Data: v.Print},
			Service: v.Service, Source: voices.Source(v.Source), Device: v.DeviceID, Length: v.Length, At: v.At,
		})
	}
	for _, r := range removals {
		k.Removals = append(k.Removals, voices.Removal{ID: r.ID, Service: r.Service, At: r.At, Next: r.NextAt, Tries: r.Tries, Fault: r.Fault})
	}
	return k, err
}

// Changes implements [voices.Store].
func (s Stored) Changes(ctx context.Context) (int, error) { return s.table.Changes(ctx) }

// Add implements [voices.Store].
func (s Stored) Add(ctx context.Context, p voices.Person) error {
	return named(s.table.Add(ctx, store.Person{ID: p.ID, Name: p.Name, UserID: p.Account, ByName: p.By, At: p.At}))
}

// Edit implements [voices.Store].
func (s Stored) Edit(ctx context.Context, p voices.Person) error {
	return named(s.table.Edit(ctx, p.ID, p.Name, p.Account))
}

// Delete implements [voices.Store].
func (s Stored) Delete(ctx context.Context, id string, memories bool) error {
	return named(s.table.Delete(ctx, id, memories))
}

// Begin implements [voices.Store].
func (s Stored) Begin(ctx context.Context, r voices.Removal) error {
	return s.table.Begin(ctx, store.VoiceRemoval{ID: r.ID, Service: r.Service, At: r.At, NextAt: r.Next})
}

// AddVoice implements [voices.Store].
func (s Stored) AddVoice(ctx context.Context, v voices.Voice, most int) error {
	return named(s.table.AddVoice(ctx, store.Voice{
		ID: v.Print.ID, PersonID: v.Print.Person, Service: v.Service, Model: v.Print.Model, Print: v.Print.Data, Source: string(v.Source), DeviceID: v.Device,
		Length: v.Length, At: v.At,
	}, most))
}

// DeleteVoice implements [voices.Store].
func (s Stored) DeleteVoice(ctx context.Context, person, id string) error {
	return named(s.table.DeleteVoice(ctx, person, id))
}

// Removed implements [voices.Store].
func (s Stored) Removed(ctx context.Context, id string) error { return s.table.Removed(ctx, id) }

// NotRemoved implements [voices.Store].
func (s Stored) NotRemoved(ctx context.Context, id, fault string, next time.Time) error {
	return s.table.NotRemoved(ctx, id, fault, next)
}

// named returns the errors of the tables as package voices has them.
func named(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return voices.ErrNobody
	case errors.Is(err, store.ErrExists):
		return voices.ErrTaken
	}
	return err
}
