package documents

import (
	"context"
	"errors"
	"os"

	"xiaozhi/knowledge"
	"xiaozhi/knowledge/apart"
	"xiaozhi/knowledge/reader"
	"xiaozhi/mcp/local"
)

// Reader returns what reads documents: a process of its own for each, of the program in a file, with a folder for what it makes
// once. Without a program, as in tests, it is read here.
func Reader(program, cache string) func(ctx context.Context, f *os.File, name string) (reader.Document, error) {
	if program != "" {
		return (&apart.Reader{Program: []string{program}, Cache: cache}).Read
	}
	return func(ctx context.Context, f *os.File, name string) (reader.Document, error) {
		r := reader.New(reader.Options{Interpret: true})
		defer r.Close(ctx)
		info, err := f.Stat()
		if err != nil {
			return reader.Document{}, err
		}
		return r.Read(ctx, f, info.Size(), name)
	}
}

// Passages are the documents of a library as the tool looks into them.
type Passages struct{ Library *knowledge.Library }

var _ local.Documents = Passages{}

// Find implements [local.Documents].
func (p Passages) Find(ctx context.Context, agent, query string, chars int) (all []local.Passage, err error) {
	found, err := p.Library.Search(ctx, agent, query, chars)
	if errors.Is(err, knowledge.ErrLoading) {
		err = local.ErrLoading
	}
	for _, f := range found {
		all = append(all, local.Passage{Source: f.Document.Name, Page: f.Piece.Page, Heading: f.Piece.Heading, Text: f.Piece.Text})
	}
	return all, err
}
