// Package documents is the pages of the documents of an agent, and the same for programs: what there is and how far it is, uploads, and
// a search that finds what the agent would.
package documents

import (
	"context"
	"embed"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/knowledge"
	"xiaozhi/knowledge/reader"
)

// Files are the templates of the pages.
//
//go:embed *.html
var Files embed.FS

// Topic names the live part with the documents of an agent, whose name is the key.
const Topic = "documents"

// Library keeps documents: a [knowledge.Library].
type Library interface {
	Documents(agent string) []knowledge.Document
	Folders(agent string) []knowledge.Folder
	Document(ctx context.Context, agent, id string) (knowledge.Document, []knowledge.Piece, error)
	Upload(ctx context.Context, agent, by, name string, body io.Reader) (knowledge.Document, error)
	Delete(ctx context.Context, agent, id string) error
	Search(ctx context.Context, agent, query string, chars int) ([]knowledge.Found, error)
}

// Book keeps agents, as far as the one who asks may know of them: a [roster.API].
type Book interface {
	One(r *http.Request, name string) (roster.Agent, error)
	OwnerOf(ctx context.Context, name string) (string, error)
}

// Options say what the pages and routes use.
type Options struct {
	Library Library
	Book    Book
	Guard   *access.Guard
}

// Documents of an agent are for its owner, and owners of the server.
var (
	look   = account.Need{Role: account.Member, Scope: account.Read, Own: true}
	change = account.Need{Role: account.Member, Scope: account.Admin, Own: true}
)

// maxUpload is how much a request may send, in bytes: a document, and what a form has around it.
const maxUpload = reader.MaxFile + 1<<20

// tried is how much a search on a page shows, in characters: what a model would be given.
const tried = 3000

// owner is whose the agent of a request is.
func (o Options) owner(r *http.Request) (string, error) {
	return o.Book.OwnerOf(r.Context(), r.PathValue("name"))
}

// Page shows the documents of an agent.
type Page struct {
	site *ui.Site
	o    Options
}

// New returns the pages.
func New(site *ui.Site, o Options) *Page { return &Page{site, o} }

// up is the path of an agent, here that of its documents.
func up(agent string) string   { return ui.Prefix + "agents/" + url.PathEscape(agent) }
func here(agent string) string { return up(agent) + "/documents" }

// Routes are those of the pages.
func (p *Page) Routes() []access.Route {
	const path = ui.Prefix + "agents/{name}/documents"
	of := func(need account.Need) access.Route { return access.Route{Need: need, Owner: p.o.owner} }
	upload := p.site.Page("POST "+path, of(change), p.upload)
	upload.MaxBody = maxUpload
	return []access.Route{
		p.site.Page("GET "+path, of(look), p.list),
		upload,
		p.site.Page("GET "+path+"/{id}", of(look), p.one),
		p.site.Page("POST "+path+"/{id}", of(change), p.remove),
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	need := account.Need{Role: account.Member, Scope: account.Read}
	return []live.Topic{{Name: Topic, Need: need, Parts: func(r *http.Request, agent string) ([]live.Part, error) {
		owner, err := p.o.Book.OwnerOf(r.Context(), agent)
		if who := access.PersonOf(r); err == nil && !who.Is(account.Owner) && (owner == "" || owner != who.ID) {
			err = account.ErrForbidden
		}
		if err != nil {
			return nil, err
		}
		l, err := p.listing(r, agent)
		if err != nil {
			return nil, err
		}
		html, err := p.site.Fragment(r, "documents-rows", l)
		return []live.Part{{ID: "documents", HTML: html}}, err
	}}}
}

// Reason names the text that says to people why something was not done; "": it is not for them.
func Reason(err error) (id string, args []any) {
	_, long := errors.AsType[*http.MaxBytesError](err)
	switch {
	case long, errors.Is(err, knowledge.ErrLarge):
		return "documents/large", []any{reader.MaxFile >> 20}
	case errors.Is(err, knowledge.ErrEmpty):
		return "documents/empty", nil
	case errors.Is(err, knowledge.ErrUnknown):
		return "documents/unknown", nil
	case errors.Is(err, knowledge.ErrInFolder):
		return "documents/in-folder", nil
	case errors.Is(err, knowledge.ErrTooMany):
		return "documents/many", []any{knowledge.MaxDocuments}
	case errors.Is(err, knowledge.ErrBusy):
		return "documents/busy", nil
	case errors.Is(err, knowledge.ErrNowhere):
		return "documents/nowhere", nil
	case errors.Is(err, knowledge.ErrLoading):
		return "documents/loading", nil
	}
	return "", nil
}

// Explain says to people why something was not done; "": it is not for them.
func Explain(lang text.Lang, err error) string {
	id, args := Reason(err)
	if id == "" {
		return ""
	}
	return message.In(lang, id, args...)
}

// problem says in a sentence why a document cannot be found, or not whole; "": it can.
func problem(lang text.Lang, d *knowledge.Document) string {
	switch {
	case d.State == knowledge.Failed:
		id, args := faultText(d)
		return message.In(lang, id, args...)
	case d.Cut:
		return message.In(lang, "documents/part")
	}
	return ""
}

// faultText names the text that says why a document cannot be read.
func faultText(d *knowledge.Document) (id string, args []any) {
	switch d.Fault {
	case reader.Large:
		return "documents/fault-large", []any{reader.MaxFile >> 20}
	case reader.OtherKind:
		return "documents/fault-kind", []any{d.Detail}
	case reader.Empty:
		return "documents/fault-empty", nil
	case reader.Binary:
		return "documents/fault-binary", nil
	case reader.Encrypted:
		return "documents/fault-encrypted", nil
	case reader.Bomb:
		return "documents/fault-bomb", nil
	case reader.Scanned:
		return "documents/fault-scanned", nil
	case reader.Encoding:
		return "documents/fault-encoding", nil
	case reader.Slow:
		return "documents/fault-slow", nil
	case reader.Heavy:
		return "documents/fault-heavy", nil
	case knowledge.Closed:
		return "documents/fault-closed", nil
	case knowledge.Outside:
		return "documents/fault-outside", nil
	case knowledge.Full:
		return "documents/fault-full", nil
	case knowledge.Lost:
		return "documents/fault-lost", nil
	}
	return "documents/fault-broken", nil
}

// folderProblem says why a folder is not read, or not whole; "": it is.
func folderProblem(lang text.Lang, f *knowledge.Folder) string {
	switch {
	case f.Beyond > 0:
		return message.In(lang, "documents/folder-many", knowledge.MaxDocuments)
	case f.Err == nil:
		return ""
	case errors.Is(f.Err, knowledge.ErrManyFiles):
		return message.In(lang, "documents/folder-many", knowledge.MaxEntries)
	case errors.Is(f.Err, knowledge.ErrFileName):
		return message.In(lang, "documents/folder-names")
	case errors.Is(f.Err, fs.ErrNotExist):
		return message.In(lang, "documents/folder-gone")
	}
	return message.In(lang, "documents/folder-closed", cause(f.Err))
}

// cause is the last part of an error of a file: what the system says.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
