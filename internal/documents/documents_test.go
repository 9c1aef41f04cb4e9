package documents

import (
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"xiaozhi/knowledge"
	"xiaozhi/knowledge/reader"
	"xiaozhi/store"
)

// TestStored: what is kept comes back as it was, and errors are those that the library knows.
func TestStored(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, at := New(db.Documents), time.UnixMilli(1_700_000_000_123).UTC()
	d := knowledge.Document{
		ID: "1", Agent: "home", Folder: "/f", Name: "a.pdf", Size: 5, Modified: at, Hash: "ab", Kind: reader.PDF, Title: "T", State: knowledge.Ready, Pieces: 1, Chars: 4,
		Cut: true, Reader: reader.Version, By: "anna", At: at, ReadAt: at,
	}
	failed := knowledge.Document{ID: "2", Agent: "home", Name: "b", State: knowledge.Failed, Fault: reader.OtherKind, Detail: "ZIP", At: at, ReadAt: at}
	piece := reader.Piece{Text: "text", Heading: "h", Page: 3, At: 7}
	for _, err := range []error{s.Put(t.Context(), d, []reader.Piece{piece}), s.Put(t.Context(), failed, nil), s.SetVectors(t.Context(), "1", knowledge.Vectors{Model: "m", Of: [][]byte{{9}}})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.VectorOf = "m"
	all, changes, err := s.List(t.Context())
	if err != nil || !reflect.DeepEqual(all, []knowledge.Document{d, failed}) {
		t.Errorf("%+v, %v, want %+v", all, err, []knowledge.Document{d, failed})
	}
	if now, err := s.Changes(t.Context()); err != nil || now != changes || changes != 3 {
		t.Errorf("%d changes, then %d, %v", changes, now, err)
	}
	if pieces, err := s.Pieces(t.Context(), "1", 0); err != nil || len(pieces) != 1 || pieces[0].Piece != piece || string(pieces[0].Vector) != "\x09" {
		t.Errorf("%+v, %v", pieces, err)
	}
	other := d
	other.ID = "3"
	if err := s.Put(t.Context(), other, nil); !errors.Is(err, knowledge.ErrConflict) {
		t.Errorf("another of that name: %v", err)
	}
	if err := s.Note(t.Context(), other); !errors.Is(err, knowledge.ErrUnknown) {
		t.Errorf("one that is not there: %v", err)
	}
	if err := s.Delete(t.Context(), "1", "2"); err != nil {
		t.Error(err)
	}
	if all, _, err := s.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left: %+v, %v", all, err)
	}
}
