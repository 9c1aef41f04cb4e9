// Package reader reads documents of strangers: plain text, Markdown, HTML, DOCX and PDF, in whatever encoding, and cuts them
// into pieces with their place. What cannot be read ends in a [*FaultError], which names one cause for people.
//
// It starts no goroutine. A document may still use much memory and time until its limits are reached, so a server has its
// documents read by a process of its own (package knowledge/apart).
package reader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
)

// Version is that of what is made of a document: one that was read by an older one is read again.
const Version = 1

// Kind is a kind of documents.
type Kind string

// The kinds.
const (
	Text     Kind = "text"
	Markdown Kind = "markdown"
	HTML     Kind = "html"
	DOCX     Kind = "docx"
	PDF      Kind = "pdf"
)

// Limits of one document.
const (
	MaxFile  = 100 << 20 // bytes of its file
	MaxText  = 2 << 20   // bytes of its text; what follows is left out
	MaxPages = 2000      // of a PDF; what follows is left out
	maxPart  = 64 << 20  // bytes of one part of an archive when it is unpacked
	maxTitle = 200       // bytes
)

// Document is the text of a document, in pieces.
type Document struct {
	Kind   Kind
	Title  string // that it gives itself; "": none
	Pieces []Piece
	Chars  int  // of its text
	Cut    bool // a part was left out: it is longer than the limits, or pages are damaged
}

// Piece is a part of a document that can be found by itself.
type Piece struct {
	Text    string
	Heading string // under which it stands, with those above, separated by " > "; "": none
	Page    int    // from 1 on; 0: the document has no pages
	At      int    // characters of the document before it
}

// Fault is a cause why a document could not be read.
type Fault string

// The faults.
const (
	Large     Fault = "large"     // larger than [MaxFile]
	Empty     Fault = "empty"     // nothing is in it
	Binary    Fault = "binary"    // no text, and no kind that is known
	OtherKind Fault = "kind"      // another kind of document, which its Detail names
	Encrypted Fault = "encrypted" // it has a password
	Broken    Fault = "broken"    // it is damaged
	Bomb      Fault = "bomb"      // unpacked it would be far too large
	Scanned   Fault = "scanned"   // its pages are pictures
	Encoding  Fault = "encoding"  // the encoding of its text is not known
	Slow      Fault = "slow"      // reading takes too long
	Heavy     Fault = "heavy"     // reading takes too much memory
)

// FaultError says why a document could not be read.
type FaultError struct {
	Fault  Fault
	Detail string // the kind of the document for [OtherKind]
	Err    error  // of the library, for the log; may be nil
}

// Error is for the log.
func (e *FaultError) Error() string {
	text := "document: " + string(e.Fault)
	if e.Detail != "" {
		text += " (" + e.Detail + ")"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error of the library.
func (e *FaultError) Unwrap() error { return e.Err }

func fault(f Fault, err error) error { return &FaultError{Fault: f, Err: err} }

// FaultOf returns the fault of an error, [Broken] for one that names none, and what it says of it.
func FaultOf(err error) (f Fault, detail string) {
	if e, ok := errors.AsType[*FaultError](err); ok {
		return e.Fault, e.Detail
	}
	return Broken, ""
}

// Options say how documents are read. The zero value works.
type Options struct {
	// Cache is a folder for what the reader of PDFs is translated to, which takes seconds; "": it is translated each time.
	Cache string
	// Interpret has PDFs read without translating their reader, which is faster for a few small ones.
	Interpret bool
}

// Reader reads documents, one at a time.
type Reader struct {
	o    Options
	find patterns

	translated wazero.CompilationCache // of what reads PDFs; nil: none was read yet
}

// New returns a reader, to be closed.
func New(o Options) *Reader { return &Reader{o: o, find: newPatterns()} }

// Close frees what the reader holds. It reads nothing any more.
func (r *Reader) Close(ctx context.Context) error {
	if r.translated == nil {
		return nil
	}
	return r.translated.Close(ctx)
}

// Prepare makes ready what a document of this kind is read by, which for a PDF may take half a minute and some 350 MB, once: whatever
// stands in it has no part in that.
func (r *Reader) Prepare(ctx context.Context, f io.ReaderAt) error {
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil // reading it says what is wrong
	}
	if kind, _ := sniff(head[:n]); kind != kindPDF {
		return nil
	}
	pool, err := r.pdfium(ctx)
	if err != nil {
		return err
	}
	return pool.Close()
}

// Read reads a document of size bytes. Its kind is told by its content; by its name only Markdown is told from other text.
// The error is a [*FaultError], or that of ctx.
func (r *Reader) Read(ctx context.Context, f io.ReaderAt, size int64, name string) (d Document, err error) {
	defer func() {
		if p := recover(); p != nil { // of a library, at a document that its authors did not think of
			d, err = Document{}, fault(Broken, fmt.Errorf("panic: %v", p))
		}
	}()
	if size > MaxFile {
		return d, fault(Large, nil)
	}
	head := make([]byte, min(size, headSize))
	if n, err := f.ReadAt(head, 0); err != nil && (!errors.Is(err, io.EOF) || n < len(head)) {
		return d, fault(Broken, err)
	}
	if strings.TrimSpace(string(head)) == "" && size <= headSize {
		return d, fault(Empty, nil)
	}
	var c *slicer
	switch kind, detail := sniff(head); kind {
	case kindPDF:
		d.Kind = PDF
		c, err = r.readPDF(ctx, io.NewSectionReader(f, 0, size))
	case kindZip:
		d.Kind = DOCX
		c, err = readDOCX(ctx, f, size)
	case kindOLE:
		return d, oleFault(io.NewSectionReader(f, 0, size))
	case kindOther:
		return d, &FaultError{Fault: OtherKind, Detail: detail}
	default:
		d.Kind, c, err = r.find.readPlain(ctx, io.NewSectionReader(f, 0, size), path.Ext(strings.ToLower(name)))
	}
	if err != nil {
		return d, cmp.Or(ctx.Err(), err)
	}
	d.Title, d.Pieces, d.Chars, d.Cut = c.finish()
	if len(d.Pieces) == 0 {
		if d.Kind == PDF {
			return d, fault(Scanned, nil)
		}
		return d, fault(Empty, nil)
	}
	return d, nil
}

// clean takes out what no text has: control characters, signs that stand for nothing, and what is no UTF-8.
func clean(s string) string {
	if !strings.ContainsFunc(s, odd) && utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u00A0' || r == '\u3000' || r == '\f' || r == '\v':
			return ' '
		case odd(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

func odd(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return false
	case r < ' ', r == 0x7F, r == '\u00A0', r == '\u3000', r == '\u00AD', r == '\uFFFE', r == '\uFFFF', r == '\uFEFF', r >= '\u200B' && r <= '\u200F', r >= '\u202A' && r <= '\u202E', r >= '\u2060' && r <= '\u2069':
		return true
	}
	return r >= 0xE000 && r <= 0xF8FF || r >= 0xE0000 && r <= 0xE007F // private use; tags, which nobody sees
}
