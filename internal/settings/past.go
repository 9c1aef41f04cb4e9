package settings

import (
	"context"
	"errors"
	"slices"

	"xiaozhi/internal/config"
	"xiaozhi/store"
)

// past holds all revisions.
type past struct{ records Records }

// save keeps a layer as the newest revision.
func (p past) save(ctx context.Context, base int, set layer, r Revision, why string) (id int, err error) {
	doc, err := set.write()
	if err != nil {
		return 0, err
	}
	id, err = p.records.Save(ctx, store.SettingsRevision{BaseID: base, Doc: doc, Note: r.Note, ByID: r.By, Kind: string(r.Kind)}, why)
	if errors.Is(err, store.ErrConflict) {
		err = ErrElsewhere
	}
	return id, err
}

// one returns what a revision sets, and the one that it was made of; 0 is nothing.
func (p past) one(ctx context.Context, n int) (set layer, base int, err error) {
	if n == 0 {
		return layer{}, 0, nil
	}
	r, err := p.records.Get(ctx, n)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, ErrNoneSuch
	}
	if err == nil {
		set, err = readLayer(r.Doc)
	}
	return set, r.BaseID, err
}

// pair returns a revision and the one that it was made of.
func (p past) pair(ctx context.Context, n int) (after, before layer, err error) {
	if n <= 0 {
		return nil, nil, ErrNoneSuch
	}
	after, base, err := p.one(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	before, _, err = p.one(ctx, base)
	return after, before, err
}

// author names who was the last after a revision to change one of some keys.
func (p past) author(ctx context.Context, base int, changes []config.Change) string {
	all, err := p.list(ctx, 0, maxPlans)
	if err != nil {
		return ""
	}
	for _, r := range all {
		for _, c := range r.Changes {
			if r.N > base && slices.ContainsFunc(changes, func(o config.Change) bool { return o.Key() == c.Key() }) {
				return r.By
			}
		}
	}
	return ""
}

// list describes revisions older than before, the newest first; 0 begins with the newest.
func (p past) list(ctx context.Context, before, limit int) ([]Revision, error) {
	if p.records == nil {
		return nil, nil
	}
	all, err := p.records.List(ctx, before, limit+1) // the last is what the one before it was made of
	if err != nil {
		return nil, err
	}
	revisions := make([]Revision, 0, len(all))
	for i, r := range all[:min(len(all), limit)] {
		if i+1 == len(all) && r.BaseID != 0 { // kept for the one after it alone: what it was made of is dropped
			break
		}
		after, _ := readLayer(r.Doc) // of one that is broken, nothing is shown
		was := layer{}
		if i+1 < len(all) && all[i+1].ID == r.BaseID {
			was, _ = readLayer(all[i+1].Doc)
		}
		revisions = append(revisions, Revision{
			N: r.ID, At: r.At, By: r.ByID, Note: r.Note, Kind: Kind(r.Kind), Undone: r.WhyUndone, Changes: changesOf(was, difference(was, after)),
		})
	}
	return revisions, nil
}

// Revisions lists revisions older than before, the newest first; 0 begins with the newest.
func (s *Settings) Revisions(ctx context.Context, before, limit int) ([]Revision, error) {
	return s.past.list(ctx, before, limit)
}
