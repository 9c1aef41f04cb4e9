// Package stored keeps agents, with all that they were, in the store.
package stored

import (
	"context"
	"errors"

	"xiaozhi/internal/roster"
	"xiaozhi/store"
)

// Agents keeps agents in a store. Its methods may be called at any time.
type Agents struct{ store *store.Store }

var _ roster.Records = Agents{}

// New returns what keeps agents in a store.
func New(s *store.Store) Agents { return Agents{s} }

// Load implements [roster.Records].
func (s Agents) Load(ctx context.Context) (k roster.Kept, err error) {
	if k.Changes, err = s.store.Agents.Changes(ctx); err != nil { // before all else: what is changed meanwhile is read again
		return k, err
	}
	agents, revisions, err := s.store.Agents.List(ctx)
	if err != nil {
		return k, err
	}
	slugs := map[string]store.Agent{}
	for _, a := range agents {
		slugs[a.ID] = a
	}
	for _, r := range revisions {
		if a, ok := slugs[r.AgentID]; ok { // else it was made since
			k.Agents = append(k.Agents, revisionOf(a.Slug, a.OwnerID, r))
		}
	}
	given, err := s.store.Agents.Assigned(ctx)
	k.Devices = map[string]roster.Given{}
	for id, a := range given {
		k.Devices[id] = roster.Given{Agent: a.Slug, Times: a.Times}
	}
	return k, err
}

// Changes implements [roster.Records].
func (s Agents) Changes(ctx context.Context) (int, error) { return s.store.Agents.Changes(ctx) }

func revisionOf(name, owner string, r store.AgentRevision) roster.Revision {
	return roster.Revision{Agent: name, Rev: r.Rev, Doc: r.Doc, Note: r.Note, By: r.ByID, At: r.At, Owner: owner}
}

// Save implements [roster.Records].
func (s Agents) Save(ctx context.Context, r roster.Revision) error {
	err := s.store.Agents.Put(ctx, r.Agent, r.Owner, store.AgentRevision{Rev: r.Rev, Doc: r.Doc, Note: r.Note, ByID: r.By, At: r.At}, roster.MaxRevisions)
	return rosterError(err)
}

// Delete implements [roster.Records].
func (s Agents) Delete(ctx context.Context, name string) error {
	return rosterError(s.store.Agents.Delete(ctx, name))
}

// Revisions implements [roster.Records].
func (s Agents) Revisions(ctx context.Context, name string) (all []roster.Revision, err error) {
	past, owner, err := s.store.Agents.Revisions(ctx, name)
	for _, r := range past {
		all = append(all, revisionOf(name, owner, r))
	}
	return all, err
}

// Assign implements [roster.Records].
func (s Agents) Assign(ctx context.Context, device, name string) (times int, err error) {
	times, err = s.store.Agents.Assign(ctx, device, name)
	if errors.Is(err, store.ErrNotFound) && s.store.Log.Flush(ctx) == nil { // one that has just become known waits to be written
		times, err = s.store.Agents.Assign(ctx, device, name)
	}
	return times, rosterError(err)
}

// rosterError is an error of the store as the roster knows it.
func rosterError(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return roster.ErrNone
	case errors.Is(err, store.ErrConflict):
		return roster.ErrConflict
	}
	return err
}
