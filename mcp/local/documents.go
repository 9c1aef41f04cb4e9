package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"xiaozhi/mcp"
)

// Documents finds what the documents of agents say. Its methods may be called at the same time.
type Documents interface {
	// Find returns the passages of an agent's documents that answer a query, the best first, of so many characters at most. The
	// error is [ErrLoading], or for the log.
	Find(ctx context.Context, agent, query string, chars int) ([]Passage, error)
}

// Passage is a part of a document.
type Passage struct {
	Source  string // name of the document
	Page    int    // 0: it has none
	Heading string // "": none
	Text    string
}

// ErrLoading says that the documents are not there yet, since the server has just begun.
var ErrLoading = errors.New("the documents are still being loaded")

// DocumentTools names the tools by which documents are looked up.
func DocumentTools() []string { return []string{"search_documents"} }

// quoted bounds what a model is given of documents at once, in characters.
const quoted = 3000

// papers looks things up in documents.
type papers struct {
	documents Documents
	log       *slog.Logger
}

// foundText is the result of a search: what the model shall do with it, and what was found.
type foundText struct {
	Note  string       `json:"note"`
	Found []quotedText `json:"found"`
}

type quotedText struct {
	Source string `json:"source"` // with the place
	Text   string `json:"text"`
}

// search looks something up in the documents of whom the device talks to.
func (p papers) search(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	query := strings.TrimSpace(textArg(arguments, "query"))
	if query == "" {
		return fail(say(ctx, "local/documents-what"))
	}
	agent := mcp.InfoFrom(ctx).Agent
	if agent == "" {
		return fail(say(ctx, "local/documents-whose"))
	}
	found, err := p.documents.Find(ctx, agent, query, quoted)
	switch {
	case errors.Is(err, ErrLoading):
		return fail(say(ctx, "local/documents-loading"))
	case err != nil:
		if ctx.Err() == nil {
			p.log.Error("documents cannot be searched", "agent", agent, "err", err)
		}
		return fail(say(ctx, "local/documents-failed"))
	case len(found) == 0:
		return tell(say(ctx, "local/documents-none"))
	}
	result := foundText{Note: say(ctx, "local/documents-note")}
	for _, f := range found {
		result.Found = append(result.Found, quotedText{placeOf(ctx, f), f.Text})
	}
	data, err := marshal(result)
	if err != nil { // texts always have a form
		return fail(say(ctx, "local/documents-failed"))
	}
	return tell(data)
}

// placeOf says where a passage stands, as people say it.
func placeOf(ctx context.Context, p Passage) string {
	switch {
	case p.Page > 0:
		return say(ctx, "local/documents-page", p.Source, p.Page)
	case p.Heading != "":
		return fmt.Sprintf("%s, %s", p.Source, p.Heading)
	}
	return p.Source
}

// marshal writes a value as JSON in which signs of HTML stand as they are.
func marshal(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}
