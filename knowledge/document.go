// Package knowledge keeps what the documents of agents say, and finds what is asked for in them.
//
// A [Library] owns all documents: it follows folders, takes uploads, has what is new or changed read, forgets what is gone,
// and answers searches from indexes in memory. The text of documents is in a [Store]. What a document says is data: nothing
// of it is ever an instruction.
package knowledge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"xiaozhi/knowledge/reader"
)

// State says how far a document is.
type State string

// The states.
const (
	Waiting State = "waiting" // it will be read, or read again
	Ready   State = "ready"   // it can be found
	Failed  State = "failed"  // it cannot be read, as its Fault says
)

// Faults beside those of package reader.
const (
	Closed  reader.Fault = "closed"  // the file may not be opened
	Outside reader.Fault = "outside" // it is a link that leads out of its folder, or nowhere
	Full    reader.Fault = "full"    // the documents of all agents have too much text already
	Lost    reader.Fault = "lost"    // what was uploaded was gone before it was read
)

// Document is a file of a folder, or an upload.
type Document struct {
	ID       string
	Agent    string
	Folder   string // in which it is; "": it was uploaded
	Name     string // path in the folder, with slashes, or the name of an upload
	Size     int64  // bytes of the file
	Modified time.Time
	Hash     string // of the file (SHA-256, hexadecimal); "": it was not looked at
	Kind     reader.Kind
	Title    string // that it gives itself
	State    State
	Fault    reader.Fault // of one that failed
	Detail   string       // of the fault
	Pieces   int
	Chars    int
	Cut      bool   // a part was left out
	Reader   int    // [reader.Version] by which it was read
	VectorOf string // the model that made the vectors of its pieces; "": none were made
	By       string // who uploaded it
	At       time.Time
	ReadAt   time.Time // zero: it was not read yet
}

// Uploaded reports whether a person has uploaded the document.
func (d *Document) Uploaded() bool { return d.Folder == "" }

// Bounds of documents. What is beyond is left out, and said so.
const (
	MaxDocuments = 5000      // of an agent
	maxWaiting   = 100       // uploads of an agent that were not read yet
	maxName      = 200       // bytes of the name of an upload
	maxIndexes   = 192 << 20 // bytes of the indexes of all agents
	roomy        = 16 << 20  // bytes of indexes that must be free until what was too much is read again: two of the largest
)

// Errors for people.
var (
	ErrUnknown  = errors.New("there is no such document")
	ErrInFolder = errors.New("the document is a file of a folder: it goes when the file is deleted there")
	ErrTooMany  = errors.New("the agent has too many documents")
	ErrBusy     = errors.New("too many uploads wait to be read")
	ErrNowhere  = errors.New("without a database uploads cannot be kept")
	ErrLarge    = errors.New("the document is too large")
	ErrEmpty    = errors.New("the document is empty")
)

// Piece is a part of a document in the store.
type Piece struct {
	reader.Piece

	Seq    int    // from 0 on
	Vector []byte // quantised; nil: none was made
}

// Vectors are those of the pieces of a document.
type Vectors struct {
	Model string
	Of    [][]byte // by the pieces' Seq
}

// Store keeps documents. Its methods may be called at the same time.
type Store interface {
	// List returns all documents of all agents, and how many changes there were before it was read.
	List(ctx context.Context) (all []Document, changes int, err error)
	// Put commits a document with its pieces in the place of what was kept of it by its ID. The error is [ErrConflict] if
	// another document has its agent, folder and name.
	Put(ctx context.Context, d Document, pieces []reader.Piece) error
	// Note commits what is known of a document whose pieces stay: [ErrUnknown] if it is gone.
	Note(ctx context.Context, d Document) error
	// Delete deletes documents with their pieces, for good.
	Delete(ctx context.Context, ids ...string) error
	// Pieces returns the pieces of a document in their order: those of the numbers that are given, or all.
	Pieces(ctx context.Context, id string, seqs ...int) ([]Piece, error)
	// SetVectors keeps the vectors of all pieces of a document.
	SetVectors(ctx context.Context, id string, v Vectors) error
	// Changes counts what was put, noted and deleted, by other programs too. It costs little.
	Changes(ctx context.Context) (int, error)
}

// ErrConflict says that another document has the same agent, folder and name.
var ErrConflict = errors.New("there is another document of that name")

// byName sorts documents: uploads first, then folders, by name.
func byName(all []Document) []Document {
	slices.SortFunc(all, func(a, b Document) int {
		return cmp.Or(strings.Compare(a.Folder, b.Folder), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all
}

// stamp is a time as stores keep it.
func stamp(t time.Time) time.Time { return t.Truncate(time.Millisecond).UTC() }

// same reports whether two documents are the same in all that is kept of them.
func same(a, b Document) bool {
	for _, d := range []*Document{&a, &b} {
		d.Modified, d.At, d.ReadAt = stamp(d.Modified), stamp(d.At), stamp(d.ReadAt)
	}
	return a == b
}
