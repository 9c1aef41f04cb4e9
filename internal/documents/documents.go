// Package documents keeps what the documents of agents say in the store.
package documents

import (
	"context"
	"errors"

	"xiaozhi/knowledge"
	"xiaozhi/knowledge/reader"
	"xiaozhi/store"
)

// Stored keeps documents in a table. Its methods may be called at any time.
type Stored struct{ table *store.Documents }

var _ knowledge.Store = Stored{}

// New returns what keeps documents in a table.
func New(table *store.Documents) Stored { return Stored{table} }

// List implements [knowledge.Store].
func (s Stored) List(ctx context.Context) (all []knowledge.Document, changes int, err error) {
	rows, changes, err := s.table.List(ctx)
	for _, r := range rows {
		all = append(all, knowledge.Document{
			ID: r.ID, Agent: r.Agent, Folder: r.Folder, Name: r.Name, Size: int64(r.Size), Modified: r.ModifiedAt, Hash: r.Hash, Kind: reader.Kind(r.Kind), Title: r.Title,
			State: knowledge.State(r.State), Fault: reader.Fault(r.Fault), Detail: r.Detail, Pieces: r.Pieces, Chars: r.Chars, Cut: r.Part, Reader: r.Reader,
			VectorOf: r.VectorOf, By: r.ByID, At: r.At, ReadAt: r.ReadAt,
		})
	}
	return all, changes, err
}

func rowOf(d knowledge.Document) store.Document {
	return store.Document{
		ID: d.ID, Agent: d.Agent, Folder: d.Folder, Name: d.Name, Size: int(d.Size), ModifiedAt: d.Modified, Hash: d.Hash, Kind: string(d.Kind), Title: d.Title,
		State: string(d.State), Fault: string(d.Fault), Detail: d.Detail, Pieces: d.Pieces, Chars: d.Chars, Part: d.Cut, Reader: d.Reader,
		VectorOf: d.VectorOf, ByID: d.By, At: d.At, ReadAt: d.ReadAt,
	}
}

// errorOf is an error of the store as the library knows it.
func errorOf(err error) error {
	switch {
	case errors.Is(err, store.ErrExists):
		return knowledge.ErrConflict
	case errors.Is(err, store.ErrNotFound):
		return knowledge.ErrUnknown
	}
	return err
}

// Put implements [knowledge.Store].
func (s Stored) Put(ctx context.Context, d knowledge.Document, pieces []reader.Piece) error {
	rows := make([]store.DocumentPiece, len(pieces))
	for i, p := range pieces {
		rows[i] = store.DocumentPiece{Seq: i, Page: p.Page, Heading: p.Heading, AtChar: p.At, Text: p.Text}
	}
	return errorOf(s.table.Put(ctx, rowOf(d), rows))
}

// Note implements [knowledge.Store].
func (s Stored) Note(ctx context.Context, d knowledge.Document) error {
	return errorOf(s.table.Note(ctx, rowOf(d)))
}

// Delete implements [knowledge.Store].
func (s Stored) Delete(ctx context.Context, ids ...string) error { return s.table.Delete(ctx, ids...) }

// Pieces implements [knowledge.Store].
func (s Stored) Pieces(ctx context.Context, id string, seqs ...int) (all []knowledge.Piece, err error) {
	rows, err := s.table.Pieces(ctx, id, seqs...)
	for _, r := range rows {
		all = append(all, knowledge.Piece{Piece: reader.Piece{Text: r.Text, Heading: r.Heading, Page: r.Page, At: r.AtChar}, Seq: r.Seq, Vector: r.Vector})
	}
	return all, err
}

// SetVectors implements [knowledge.Store].
func (s Stored) SetVectors(ctx context.Context, id string, v knowledge.Vectors) error {
	return errorOf(s.table.SetVectors(ctx, id, v.Model, v.Of))
}

// Changes implements [knowledge.Store].
func (s Stored) Changes(ctx context.Context) (int, error) { return s.table.Changes(ctx) }
