package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// Document is a document of an agent.
type Document struct {
	ID         string
	AgentID    string
	Folder     string // "": it was uploaded
	Name       string
	Size       int
	ModifiedAt time.Time
	Hash       string
	Kind       string
	Title      string
	State      string // waiting, ready or failed
	Fault      string
	Detail     string
	Pieces     int
	Chars      int
	Part       bool // a part was left out
	Reader     int  // the version of what has read it
	VectorOf   string
	ByID       string // name of who uploaded it
	At         time.Time
	ReadAt     time.Time

	Agent string // slug; not a column
}

// DocumentPiece is a part of a document.
type DocumentPiece struct {
	DocumentID string
	Seq        int
	Page       int
	Heading    string
	AtChar     int
	Text       string
	Vector     []byte
}

const (
	documentColumns = "id, agent_id, folder, name, size, modified_at, hash, kind, title, state, fault, detail, pieces, chars, part, reader, vector_of, by_id, at, read_at"
	pieceColumns    = "document_id, seq, page, heading, at_char, text, vector"
	selectPiece     = "SELECT " + pieceColumns + " FROM document_pieces WHERE document_id = $1"
)

func (d *Document) fields() []any {
	return []any{
		text{&d.ID}, text{&d.AgentID}, text{&d.Folder}, text{&d.Name}, whole{&d.Size}, stamp{&d.ModifiedAt}, maybe{&d.Hash}, maybe{&d.Kind}, maybe{&d.Title},
		text{&d.State}, maybe{&d.Fault}, maybe{&d.Detail}, whole{&d.Pieces}, whole{&d.Chars}, flag{&d.Part}, whole{&d.Reader}, maybe{&d.VectorOf}, maybe{&d.ByID},
		stamp{&d.At}, stamp{&d.ReadAt},
	}
}

func (p *DocumentPiece) fields() []any {
	return []any{text{&p.DocumentID}, whole{&p.Seq}, number{&p.Page}, maybe{&p.Heading}, whole{&p.AtChar}, text{&p.Text}, octets{&p.Vector}}
}

// Documents is the table of documents, with their pieces.
type Documents struct{ db *database }

// List lists all documents, each with the slug of its agent, and how often the table had changed before it was read.
func (t *Documents) List(ctx context.Context) (all []Document, changes int, err error) {
	if changes, err = t.Changes(ctx); err != nil {
		return nil, 0, err
	}
	names, err := (&Agents{t.db}).Names(ctx)
	if err != nil {
		return nil, 0, err
	}
	all, err = list[Document](ctx, t.db.read, "SELECT "+documentColumns+" FROM documents ORDER BY id")
	for i := range all {
		all[i].Agent = names[all[i].AgentID]
	}
	return all, changes, err
}

// Changes counts what was changed of documents, by anybody. It is one row: ask it as often as you like.
func (t *Documents) Changes(ctx context.Context) (int, error) {
	return count(ctx, t.db.read, "SELECT times FROM changes WHERE what = 'documents'")
}

// Put writes a document of the agent of its slug with its pieces, in the place of those it had: [ErrExists] if another one has
// its agent, folder and name.
func (t *Documents) Put(ctx context.Context, d Document, pieces []DocumentPiece) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		a, err := (&Agents{t.db}).named(ctx, tx, d.Agent)
		if err != nil {
			return err
		}
		d.AgentID = a.ID
		if _, err := execIn(ctx, tx, "DELETE FROM document_pieces WHERE document_id = $1", d.ID); err != nil {
			return err
		}
		n, err := t.update(ctx, tx, &d)
		if err == nil && n == 0 {
			_, err = execIn(ctx, tx, insert("documents", documentColumns), d.fields()...)
		}
		if err != nil {
			return err
		}
		for i := range pieces {
			pieces[i].DocumentID = d.ID
			if _, err := execIn(ctx, tx, insert("document_pieces", pieceColumns), pieces[i].fields()...); err != nil {
				return err
			}
		}
		return documentsChanged(ctx, tx)
	})
}

// update writes a document in the place of its row, and returns how many rows that were.
func (t *Documents) update(ctx context.Context, tx *sql.Tx, d *Document) (int64, error) {
	_, columns, _ := strings.Cut(documentColumns, "id, agent_id, ")
	fields := d.fields()[2:]
	return execIn(ctx, tx, "UPDATE documents SET "+assign(columns)+" WHERE id = $19", append(fields, d.ID)...)
}

// Note writes a document in the place of its row; its pieces stay. The error is [ErrNotFound].
func (t *Documents) Note(ctx context.Context, d Document) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		n, err := t.update(ctx, tx, &d)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		return documentsChanged(ctx, tx)
	})
}

// Delete deletes documents with their pieces, for good: see [Store.Forget].
func (t *Documents) Delete(ctx context.Context, ids ...string) error {
	err := t.db.change(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			if _, err := execIn(ctx, tx, "DELETE FROM documents WHERE id = $1", id); err != nil {
				return err
			}
		}
		return documentsChanged(ctx, tx)
	})
	if err != nil {
		return err
	}
	return t.db.empty(ctx)
}

// Pieces lists the pieces of a document in their order: those of numbers, or all.
func (t *Documents) Pieces(ctx context.Context, id string, seqs ...int) ([]DocumentPiece, error) {
	query, args := selectPiece, arguments{id}
	if len(seqs) > 0 {
		marks := make([]string, len(seqs))
		for i, seq := range seqs {
			marks[i] = args.mark(seq)
		}
		query += " AND seq IN (" + strings.Join(marks, ", ") + ")"
	}
	return list[DocumentPiece](ctx, t.db.read, query+" ORDER BY seq", args...)
}

// SetVectors writes the vectors of all pieces of a document, which a model has made: [ErrNotFound].
func (t *Documents) SetVectors(ctx context.Context, id, model string, vectors [][]byte) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		n, err := execIn(ctx, tx, "UPDATE documents SET vector_of = $1 WHERE id = $2", maybe{&model}, id)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		for seq := range vectors {
			if _, err := execIn(ctx, tx, "UPDATE document_pieces SET vector = $1 WHERE document_id = $2 AND seq = $3", octets{&vectors[seq]}, id, seq); err != nil {
				return err
			}
		}
		return documentsChanged(ctx, tx)
	})
}

// documentsChanged counts a change of documents. It is the last step of a transaction: those of other servers wait for it.
func documentsChanged(ctx context.Context, tx *sql.Tx) error {
	n, err := execIn(ctx, tx, "UPDATE changes SET times = times + 1 WHERE what = 'documents'")
	if err == nil && n == 0 {
		err = errors.New("the table of changes has no row for documents")
	}
	return err
}
