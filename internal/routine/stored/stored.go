// Package stored keeps routines in the store.
package stored

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"xiaozhi/internal/routine"
	"xiaozhi/store"
)

// Stored keeps routines in a database. Its methods may be called at any time.
type Stored struct {
	table *store.Routines
	once  func(ctx context.Context, keep func() error) error
}

var _ routine.Store = Stored{}

// New returns what keeps routines in a table. once calls keep again while a device that has just come is not written down yet.
func New(table *store.Routines, once func(ctx context.Context, keep func() error) error) Stored {
	return Stored{table, once}
}

// Load implements [routine.Store].
func (s Stored) Load(ctx context.Context) (all []routine.Routine, err error) {
	rows, err := s.table.List(ctx)
	for _, row := range rows {
		r := routine.Routine{ID: row.ID, Source: routine.Source(row.Source), Device: row.DeviceID, ByID: row.ByID, By: row.ByName, Hash: row.Hash, Made: row.At}
		if err := errors.Join(json.Unmarshal([]byte(row.Body), &r.Definition), json.Unmarshal([]byte(row.State), &r.State)); err != nil {
			return nil, fmt.Errorf("routine %s: %w", row.ID, err)
		}
		all = append(all, r)
	}
	return all, err
}

// Put implements [routine.Store].
func (s Stored) Put(ctx context.Context, r routine.Routine) error {
	row := store.Routine{ID: r.ID, Source: string(r.Source), DeviceID: r.Device, ByID: r.ByID, ByName: r.By, Hash: r.Hash, At: r.Made}
	d := r.Definition
	if r.Source == routine.ByFile {
		d, row.Hash = routine.Definition{}, ""
	}
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	state, err := json.Marshal(r.State)
	if err != nil {
		return err
	}
	row.Body, row.State = string(body), string(state)
	return s.once(ctx, func() error { return s.table.Put(ctx, row) })
}

// Delete implements [routine.Store].
func (s Stored) Delete(ctx context.Context, id string) error { return s.table.Delete(ctx, id) }
