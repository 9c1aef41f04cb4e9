package voices

import (
	"embed"
	"errors"
	"io"
	"net/http"
	"strings"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/voices"
)

// Files are the templates of the page.
//
//go:embed *.html
var Files embed.FS

// Topic names the live part with the people.
const Topic = "voices"

const path = ui.Prefix + "voices"

// Explain says to people why something was not done; "": it is not for them.
func Explain(lang text.Lang, err error) string {
	status, id, args := reason(err)
	if status == 0 {
		return ""
	}
	return message.In(lang, id, args...)
}

// Page shows the people who are known by their voices.
type Page struct {
	site *ui.Site
	desk *Desk
	did  func(r *http.Request, act, object string, outcome error) // keeps it in the audit
}

// New returns the page.
func New(site *ui.Site, door access.Door, desk *Desk) *Page { return &Page{site, desk, door.Did} }

// Routes are for owners alone.
func (p *Page) Routes() []access.Route {
	if p.desk == nil {
		return nil
	}
	return []access.Route{
		p.site.Page("GET "+path, access.Route{Need: owners}, func(w http.ResponseWriter, r *http.Request) { p.show(w, r, nil, nil) }),
		p.site.Page("POST "+path, access.Route{Need: owners, MaxBody: maxFile + 1<<16}, p.change),
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	if p.desk == nil {
		return nil
	}
	return []live.Topic{live.Whole(Topic, owners, "voices", func(r *http.Request) (string, error) {
		return p.site.Fragment(r, "voices-list", p.content(nil))
	})}
}

// content holds all that the page shows.
type content struct {
	Engine   string // "": nothing tells people apart
	People   []person
	Removals []voices.Removal
	Most     int
	Trial    *voices.Trial // that was asked for just now; nil: none was
	Verdict  string
}

func (p *Page) content(t *voices.Trial) content {
	book := p.desk.o.Book
	c := content{Engine: book.Engine(), People: p.desk.people(), Removals: book.Removals(), Most: voices.MaxPeople, Trial: t}
	if t != nil {
		c.Verdict = verdict(t.Speaker.Verdict)
	}
	return c
}

func (p *Page) show(w http.ResponseWriter, r *http.Request, f *ui.Form, t *voices.Trial) {
	p.site.Show(w, r, "voices", ui.Content{Title: p.site.Say(r, "voices/title"), Data: p.content(t), Form: f})
}

// change does what an owner has asked for.
func (p *Page) change(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		err := r.ParseMultipartForm(1 << 20) // Form answers for what else is wrong with it
		if _, long := errors.AsType[*http.MaxBytesError](err); long {
			f := &ui.Form{}
			f.Wrong("", p.site.Reason(r, errLong))
			p.show(w, r, f, nil)
			return
		}
		if r.MultipartForm != nil {
			defer func() { _ = r.MultipartForm.RemoveAll() }() // files of the system that are left are its own
		}
	}
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	if f.Get("do") == "try" {
		p.try(w, r, f)
		return
	}
	one, _ := p.desk.o.Book.Person(f.Get("id"))
	act, done, note, err := "", "", one.Name, error(nil)
	switch f.Get("do") {
	case "add":
		act, done, note = "person.add", "voices/added", f.Get("name")
		_, err = p.desk.add(r, note)
	case "rename":
		act, done, note = "person.rename", "voices/renamed", f.Get("name")
		err = p.desk.rename(r.Context(), one.ID, note)
	case "enrol":
		act, done = "voice.enrol", "voices/enrolled"
		err = withFile(r, func(from io.Reader) error { _, err := p.desk.enrol(r, one.ID, from); return err })
	case "drop":
		act = "voice.delete"
		var left bool
		left, err = p.desk.o.Book.DeleteVoice(r.Context(), one.ID, f.Get("voice"))
		done = deleted(Forgotten{Left: left}, "voices/dropped")
	case "delete":
		act = "person.delete"
		var left Forgotten
		left, err = p.desk.o.Forget(r.Context(), one.ID, f.Has("memories", "on"))
		done = deleted(left, "voices/deleted")
	default:
		p.site.NotFound(w, r)
		return
	}
	p.did(r, act, note, err)
	switch {
	case err == nil && strings.HasPrefix(done, "voices/deleted-"): // it names nobody
		p.site.Done(w, r, path, done)
	case err == nil:
		p.site.Done(w, r, path, done, note)
	case p.site.Explain(w, r, f, "", err):
		if act != "person.add" {
			f.Set("name", "") // it is not of the one who is to be added
		}
		p.show(w, r, f, nil)
	}
}

// deleted names the text that says what is left of something that was deleted.
func deleted(f Forgotten, done string) string {
	switch {
	case len(f.Files) > 0:
		return "voices/deleted-files"
	case f.Left:
		return "voices/deleted-later"
	}
	return done
}

// try says whose voice is in a file.
func (p *Page) try(w http.ResponseWriter, r *http.Request, f *ui.Form) {
	var t voices.Trial
	err := withFile(r, func(from io.Reader) (err error) { t, err = p.desk.try(r, from); return err })
	p.did(r, "voice.try", t.Speaker.Name, err)
	if err == nil {
		p.show(w, r, f, &t)
	} else if p.site.Explain(w, r, f, "", err) {
		p.show(w, r, f, nil)
	}
}

// withFile runs do with the file of a form.
func withFile(r *http.Request, do func(from io.Reader) error) error {
	file, _, err := r.FormFile("file")
	if err != nil {
		return errSound
	}
	defer file.Close()
	return do(file)
}
