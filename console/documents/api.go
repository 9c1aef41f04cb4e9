package documents

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/knowledge"
)

// document describes a document to programs.
type document struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Folder     string     `json:"folder,omitempty"` // in which it is; none: it was uploaded
	Size       int64      `json:"size"`
	Kind       string     `json:"kind,omitempty"`
	Title      string     `json:"title,omitempty"`
	State      string     `json:"state"`
	Fault      string     `json:"fault,omitempty"`
	Problem    string     `json:"problem,omitempty"` // in both languages
	Pieces     int        `json:"pieces"`
	Characters int        `json:"characters"`
	Partial    bool       `json:"partial,omitempty"`
	By         string     `json:"by,omitempty"`
	At         time.Time  `json:"at"`
	ReadAt     *time.Time `json:"read_at,omitempty"`
}

// folderState describes a folder to programs.
type folderState struct {
	Path    string     `json:"path"`
	Problem string     `json:"problem,omitempty"`
	Others  int        `json:"others,omitempty"` // files of kinds that are not read
	Looked  *time.Time `json:"looked,omitempty"`
}

// documentList is the answer to GET …/documents.
type documentList struct {
	Documents []document    `json:"documents"`
	Folders   []folderState `json:"folders"`
}

// excerpt is a piece of a document.
type excerpt struct {
	Document string `json:"document,omitempty"` // id
	Name     string `json:"name,omitempty"`
	Page     int    `json:"page,omitempty"`
	Heading  string `json:"heading,omitempty"`
	At       int    `json:"at"` // characters before it
	Text     string `json:"text"`
}

// wholeDocument is the answer to GET …/documents/ID.
type wholeDocument struct {
	document

	Text []excerpt `json:"text"`
}

// foundList is the answer to GET …/search.
type foundList struct {
	Found []excerpt `json:"found"`
}

// Programs are the routes for programs.
func Programs(o Options) []access.Route {
	const path = roster.Path + "/{name}/documents"
	of := func(pattern string, need account.Need, f http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.People, Need: need, Owner: o.owner, Handler: o.known(f)}
	}
	put := of("PUT "+path, change, o.put)
	put.MaxBody = maxUpload
	return []access.Route{
		of("GET "+path, look, o.list),
		put,
		of("GET "+path+"/{id}", look, o.get),
		of("DELETE "+path+"/{id}", change, o.remove),
		of("GET "+roster.Path+"/{name}/search", look, o.search),
	}
}

// both writes a text in both languages, "" for none.
func both(say func(lang text.Lang) string) string {
	if say(text.English) == "" {
		return ""
	}
	return say(text.English) + " / " + say(text.Chinese)
}

func describe(d *knowledge.Document) document {
	out := document{
		ID: d.ID, Name: d.Name, Folder: d.Folder, Size: d.Size, Kind: string(d.Kind), Title: d.Title, State: string(d.State), Fault: string(d.Fault),
		Problem: both(func(lang text.Lang) string { return problem(lang, d) }), Pieces: d.Pieces, Characters: d.Chars, Partial: d.Cut, By: d.By, At: d.At,
	}
	if !d.ReadAt.IsZero() {
		out.ReadAt = &d.ReadAt
	}
	return out
}

// known answers for an agent that is not there.
func (o Options) known(f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := o.Book.One(r, r.PathValue("name")); err != nil {
			if refusal, ok := errors.AsType[*roster.RefusalError](err); ok {
				access.Refuse(w, http.StatusNotFound, "agents", refusal.Text)
				return
			}
			o.Guard.Fail(w, r, err)
			return
		}
		f(w, r)
	})
}

func (o Options) list(w http.ResponseWriter, r *http.Request) {
	agent := r.PathValue("name")
	answer := documentList{Documents: []document{}, Folders: []folderState{}}
	for _, d := range o.Library.Documents(agent) {
		answer.Documents = append(answer.Documents, describe(&d))
	}
	for _, f := range o.Library.Folders(agent) {
		one := folderState{Path: f.Path, Problem: both(func(lang text.Lang) string { return folderProblem(lang, &f) }), Others: f.Others}
		if !f.Looked.IsZero() {
			one.Looked = &f.Looked
		}
		answer.Folders = append(answer.Folders, one)
	}
	access.Answer(w, http.StatusOK, answer)
}

func (o Options) get(w http.ResponseWriter, r *http.Request) {
	d, pieces, err := o.Library.Document(r.Context(), r.PathValue("name"), r.PathValue("id"))
	if err != nil {
		o.fail(w, r, err)
		return
	}
	answer := wholeDocument{document: describe(&d), Text: []excerpt{}}
	for _, p := range pieces {
		answer.Text = append(answer.Text, excerpt{Page: p.Page, Heading: p.Heading, At: p.At, Text: p.Text})
	}
	access.Answer(w, http.StatusOK, answer)
}

// put takes the body of a request as a document.
func (o Options) put(w http.ResponseWriter, r *http.Request) {
	agent, name := r.PathValue("name"), r.URL.Query().Get("name")
	if strings.TrimSpace(name) == "" || r.ContentLength == 0 {
		access.Refuse(w, http.StatusBadRequest, "documents/no-file", message.Both("documents/no-file"))
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // not every writer can
	d, err := o.Library.Upload(r.Context(), agent, access.PersonOf(r).Name, name, r.Body)
	o.Guard.Did(r, "document.upload", agent, err)
	if err != nil {
		o.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusAccepted, describe(&d))
}

func (o Options) remove(w http.ResponseWriter, r *http.Request) {
	err := o.Library.Delete(r.Context(), r.PathValue("name"), r.PathValue("id"))
	o.Guard.Did(r, "document.delete", r.PathValue("name"), err)
	if err != nil {
		o.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, struct{}{})
}

func (o Options) search(w http.ResponseWriter, r *http.Request) {
	found, err := o.Library.Search(r.Context(), r.PathValue("name"), r.URL.Query().Get("q"), tried)
	if err != nil {
		o.fail(w, r, err)
		return
	}
	answer := foundList{Found: []excerpt{}}
	for _, f := range found {
		answer.Found = append(answer.Found, excerpt{f.Document.ID, f.Document.Name, f.Piece.Page, f.Piece.Heading, f.Piece.At, f.Piece.Text})
	}
	access.Answer(w, http.StatusOK, answer)
}

// fail answers with what an error says.
func (o Options) fail(w http.ResponseWriter, r *http.Request, err error) {
	id, args := Reason(err)
	status := map[string]int{
		"documents/large": http.StatusRequestEntityTooLarge, "documents/unknown": http.StatusNotFound, "documents/empty": http.StatusBadRequest,
		"documents/busy": http.StatusServiceUnavailable, "documents/loading": http.StatusServiceUnavailable,
	}[id]
	switch {
	case id == "":
		o.Guard.Fail(w, r, err)
		return
	case status == 0:
		status = http.StatusConflict
	}
	access.Refuse(w, status, id, message.Both(id, args...))
}
