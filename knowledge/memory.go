package knowledge

import (
	"context"
	"slices"
	"sync"

	"xiaozhi/knowledge/reader"
)

// Memory is a [Store] that ends with the program.
type Memory struct {
	mu      sync.Mutex
	all     map[string]Document
	pieces  map[string][]Piece
	changes int
}

// NewMemory returns a store that holds nothing.
func NewMemory() *Memory {
	return &Memory{all: map[string]Document{}, pieces: map[string][]Piece{}}
}

// List implements [Store].
func (m *Memory) List(context.Context) (all []Document, changes int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.all {
		all = append(all, d)
	}
	return byName(all), m.changes, nil
}

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, d Document, pieces []reader.Piece) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.all {
		if other.ID != d.ID && other.Agent == d.Agent && other.Folder == d.Folder && other.Name == d.Name {
			return ErrConflict
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var kept []Piece
	for i, p := range pieces {
		kept = append(kept, Piece{Piece: p, Seq: i})
	}
	d.VectorOf = ""
	m.all[d.ID], m.pieces[d.ID] = d, kept
	m.changes++
	return nil
}

// Note implements [Store].
func (m *Memory) Note(_ context.Context, d Document) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.all[d.ID]; !ok {
		return ErrUnknown
	}
	m.all[d.ID] = d
	m.changes++
	return nil
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, ids ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		delete(m.all, id)
		delete(m.pieces, id)
	}
	m.changes++
	return nil
}

// Pieces implements [Store].
func (m *Memory) Pieces(_ context.Context, id string, seqs ...int) (found []Piece, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pieces[id] {
		if len(seqs) == 0 || slices.Contains(seqs, p.Seq) {
			found = append(found, p)
		}
	}
	return found, nil
}

// SetVectors implements [Store].
func (m *Memory) SetVectors(_ context.Context, id string, v Vectors) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.all[id]
	if !ok {
		return ErrUnknown
	}
	d.VectorOf = v.Model
	m.all[id] = d
	for i := range m.pieces[id] {
		if i < len(v.Of) {
			m.pieces[id][i].Vector = v.Of[i]
		}
	}
	return nil
}

// Changes implements [Store].
func (m *Memory) Changes(context.Context) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes, nil
}
