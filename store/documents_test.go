package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

func TestDocuments(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		names := func() (all []string, changes int) {
			t.Helper()
			docs, changes, err := s.Documents.List(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range docs {
				all = append(all, d.Agent+" "+d.Folder+" "+d.Name+" "+d.State)
			}
			return all, changes
		}
		pieces := func(n int) (all []DocumentPiece) {
			for i := range n {
				all = append(all, DocumentPiece{Seq: i, Page: i + 1, Heading: "Care", AtChar: 10 * i, Text: fmt.Sprintf("text %d \x00\xff", i)})
			}
			return all
		}
		doc := Document{
			ID: "1", Agent: "home", Folder: "/papers", Name: "a.pdf", Size: 1 << 40, ModifiedAt: at(1), Hash: "ab", Kind: "pdf", Title: "A", State: "ready",
			Pieces: 3, Chars: 30, Part: true, Reader: 1, ByID: "anna", At: at(2), ReadAt: at(3),
		}
		want(t, s.Documents.Put(ctx, doc, pieces(3)), nil)
		other := doc
		other.ID = "2"
		want(t, s.Documents.Put(ctx, other, nil), ErrExists)
		other.Agent = "work"
		want(t, s.Documents.Put(ctx, other, pieces(1)), nil)
		kept, before, err := s.Documents.List(ctx)
		if err != nil || len(kept) != 2 {
			t.Fatalf("%+v, %v", kept, err)
		}
		doc.AgentID = kept[0].AgentID
		if !reflect.DeepEqual(kept[0], doc) {
			t.Errorf("%+v, want %+v", kept[0], doc)
		}
		two, err := s.Documents.Pieces(ctx, "1", 0, 2)
		if err != nil || len(two) != 2 || two[1].Seq != 2 || two[1].Page != 3 || two[1].Heading != "Care" || two[1].AtChar != 20 || two[1].Text != "text 2 \uFFFD" {
			t.Errorf("%+v, %v", two, err)
		}

		want(t, s.Documents.SetVectors(ctx, "1", "m", [][]byte{{1}, {2}, {3}}), nil)
		want(t, s.Documents.SetVectors(ctx, "9", "m", nil), ErrNotFound)
		if all, err := s.Documents.Pieces(ctx, "1"); err != nil || len(all) != 3 || string(all[2].Vector) != "\x03" {
			t.Errorf("%+v, %v", all, err)
		}
		doc.Name, doc.VectorOf = "b.pdf", "m"
		want(t, s.Documents.Note(ctx, doc), nil)
		want(t, s.Documents.Note(ctx, Document{ID: "9", State: "ready"}), ErrNotFound)
		got, changes := names()
		same(t, got, []string{"home /papers b.pdf ready", "work /papers a.pdf ready"})
		if changes != before+2 {
			t.Errorf("%d changes, want %d", changes, before+2)
		}

		doc.State, doc.Pieces = "failed", 0
		want(t, s.Documents.Put(ctx, doc, nil), nil)
		if all, err := s.Documents.Pieces(ctx, "1"); err != nil || len(all) != 0 {
			t.Errorf("pieces of a document that failed: %+v, %v", all, err)
		}
		want(t, s.Documents.Delete(ctx, "2", "9"), nil)
		got, _ = names()
		same(t, got, []string{"home /papers b.pdf failed"})
		if all, err := s.Documents.Pieces(ctx, "2"); err != nil || len(all) != 0 {
			t.Errorf("pieces of a document that is gone: %+v, %v", all, err)
		}
	})
}

// TestDocumentIsWrittenSoon: who writes something else meanwhile waits for a large document no longer than for a turn's end.
func TestDocumentIsWrittenSoon(t *testing.T) {
	s := openFile(t, t.TempDir()+"/x.db")
	var all []DocumentPiece
	for i := range 1500 {
		all = append(all, DocumentPiece{Seq: i, Text: fmt.Sprintf("%01400d", i)})
	}
	began := time.Now()
	want(t, s.Documents.Put(t.Context(), Document{ID: "1", Agent: "home", Name: "a", State: "ready", Pieces: len(all), At: at(1)}, all), nil)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("a document of 2 MB is written in %v", took)
	} else {
		t.Logf("a document of 2 MB is written in %v", took)
	}
}
