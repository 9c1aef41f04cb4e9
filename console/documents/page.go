package documents

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/text"
	"xiaozhi/knowledge"
)

// listing is the page of all documents of an agent.
type listing struct {
	ui.Rows[row]

	Agent   string
	Up      string // path of the agent
	Here    string
	Folders []folder

	Query  string // that is tried; "": none is
	Found  []passage
	Failed string // why nothing was found
}

// row is a document in the list.
type row struct {
	knowledge.Document

	Path    string
	Problem string
}

// folder is one that is followed.
type folder struct {
	knowledge.Folder

	Problem string
}

// passage shows a place in a document that a search has found.
type passage struct {
	Source, Path string
	Page         int
	Heading      string
	Text         string
}

// listing takes the documents that an address asks for.
func (p *Page) listing(r *http.Request, agent string) (*listing, error) {
	lang := ui.Lang(r)
	l := &listing{Agent: agent, Up: up(agent), Here: here(agent)}
	var all []row
	for _, d := range p.o.Library.Documents(agent) {
		all = append(all, row{d, here(agent) + "/" + d.ID, problem(lang, &d)})
	}
	for _, f := range p.o.Library.Folders(agent) {
		l.Folders = append(l.Folders, folder{f, folderProblem(lang, &f)})
	}
	var err error
	l.Rows, err = ui.List[row]{
		Path: l.Here, Name: "list",
		Key:  func(d row) string { return order(&d.Document) },
		Text: func(d row) string { return d.Name + "\n" + d.Title + "\n" + d.Problem },
	}.Page(r, all, nil)
	return l, err
}

// order sorts what has failed before all else, then by name.
func order(d *knowledge.Document) string {
	first := "1"
	if d.State == knowledge.Failed {
		first = "0"
	}
	return first + text.Cut(strings.ToLower(d.Name), 120) + " " + d.ID
}

// known answers for an agent that is not there. Not ok: it was answered.
func (p *Page) known(w http.ResponseWriter, r *http.Request) (agent string, ok bool) {
	agent = r.PathValue("name")
	_, err := p.o.Book.One(r, agent)
	switch {
	case err == nil:
		return agent, true
	case p.site.Reason(r, err) != "":
		p.site.NotFound(w, r)
	default:
		p.site.Refused(w, r, err)
	}
	return "", false
}

func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	if agent, ok := p.known(w, r); ok {
		p.show(w, r, agent, nil)
	}
}

// show shows the list, with the mistakes of a form.
func (p *Page) show(w http.ResponseWriter, r *http.Request, agent string, f *ui.Form) {
	l, err := p.listing(r, agent)
	c := ui.Content{Title: p.site.Say(r, "documents/title", agent), Data: l, Form: f}
	if err != nil {
		p.site.Failed(w, r, "documents", c, err)
		return
	}
	if l.Query = strings.TrimSpace(r.URL.Query().Get("try")); l.Query != "" {
		found, err := p.o.Library.Search(r.Context(), agent, l.Query, tried)
		for _, one := range found {
			l.Found = append(l.Found, passage{one.Document.Name, here(agent) + "/" + one.Document.ID, one.Piece.Page, one.Piece.Heading, one.Piece.Text})
		}
		switch {
		case err != nil && Explain(ui.Lang(r), err) == "":
			p.site.Refused(w, r, err)
			return
		case err != nil:
			l.Failed = text.Sentence(Explain(ui.Lang(r), err))
		case len(found) == 0:
			l.Failed = p.site.Say(r, "documents/nothing")
		}
	}
	p.site.Show(w, r, "documents", c)
}

// onePage is the page of a document.
type onePage struct {
	row

	Here  string // of all
	Agent string
	Up    string // path of that
	Shown []knowledge.Piece
	More  int // pieces that are not shown
}

// maxShown is how many pieces of a document its page shows.
const maxShown = 200

func (p *Page) one(w http.ResponseWriter, r *http.Request) {
	agent, ok := p.known(w, r)
	if !ok {
		return
	}
	d, pieces, err := p.o.Library.Document(r.Context(), agent, r.PathValue("id"))
	switch {
	case errors.Is(err, knowledge.ErrUnknown):
		p.site.NotFound(w, r)
		return
	case err != nil:
		p.site.Refused(w, r, err)
		return
	}
	shown := pieces[:min(len(pieces), maxShown)]
	p.site.Show(w, r, "document", ui.Content{Title: d.Name, Data: onePage{
		row: row{d, here(agent) + "/" + d.ID, problem(ui.Lang(r), &d)}, Here: here(agent), Agent: agent, Up: up(agent), Shown: shown, More: len(pieces) - len(shown),
	}})
}

// Uploads of a form.
const (
	maxFiles   = 50
	uploadTime = 30 * time.Minute
)

// upload takes the files of a form, one after the other as they come. Nothing is in memory but what passes.
func (p *Page) upload(w http.ResponseWriter, r *http.Request) {
	agent, ok := p.known(w, r)
	if !ok {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // not every writer can
	f := &ui.Form{}
	n, err := p.take(r, agent)
	p.o.Guard.Did(r, "document.upload", agent, err)
	switch why := Explain(ui.Lang(r), err); {
	case err == nil && n > 0:
		p.site.Done(w, r, here(agent), "documents/uploaded")
		return
	case err == nil, errors.Is(err, http.ErrNotMultipart), errors.Is(err, http.ErrMissingBoundary), errors.Is(err, multipart.ErrMessageTooLarge), errors.Is(err, io.ErrUnexpectedEOF):
		f.Wrong("file", p.site.Say(r, "documents/no-file"))
	case why != "":
		f.Wrong("file", why)
	default:
		p.site.Refused(w, r, err)
		return
	}
	p.show(w, r, agent, f)
}

// take takes the files of a form, and returns how many there were.
func (p *Page) take(r *http.Request, agent string) (n int, err error) {
	form, err := r.MultipartReader()
	if err != nil {
		return 0, err
	}
	for n < maxFiles {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		case part.FormName() != "file" || part.FileName() == "":
			continue
		}
		if _, err := p.o.Library.Upload(r.Context(), agent, access.PersonOf(r).Name, part.FileName(), part); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// remove deletes an upload.
func (p *Page) remove(w http.ResponseWriter, r *http.Request) {
	agent, ok := p.known(w, r)
	if !ok {
		return
	}
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	err := p.o.Library.Delete(r.Context(), agent, r.PathValue("id"))
	p.o.Guard.Did(r, "document.delete", agent, err)
	switch why := Explain(ui.Lang(r), err); {
	case err == nil:
		p.site.Done(w, r, here(agent), "documents/deleted")
	case errors.Is(err, knowledge.ErrUnknown):
		p.site.NotFound(w, r)
	case why != "":
		f.Wrong("", why)
		p.show(w, r, agent, f)
	default:
		p.site.Refused(w, r, err)
	}
}
