// Package ui renders the pages of the console: templates, texts by language, files with their hash in the path, forms
// with their mistakes at the field, errors. Each page is a package beside it that hands in its templates.
package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
)

//go:embed templates/*.html assets
var frame embed.FS

// Options configure a [Site].
type Options struct {
	Name    func() string                  // of the server, as people call it; nil: xiaozhi
	Zone    func() *time.Location          // of all times; nil: that of the machine
	Now     func() time.Time               // nil: time.Now
	Owned   func(ctx context.Context) bool // somebody owns the server, and can log in; nil: yes
	Version string
	Files   []fs.FS                                // templates (*.html) and assets (*.js, *.css, *.svg) of pages, in their top folder
	Explain func(lang text.Lang, err error) string // says to people why something was not done; "": it is not for them
	Log     *slog.Logger
}

// Site holds the templates, texts and files of all pages. Its methods may be called at the same time.
type Site struct {
	o      Options
	parsed func() (*template.Template, error) // as the files have them, to be cloned; read when the first page is shown, for they take 2 MB
	tongue map[text.Lang]tongue
	assets map[string][]byte
	hash   string // of all assets: part of their path
	door   access.Door
	turns  turns
}

// tongue holds the parts that pages in one language are made of.
type tongue struct {
	words     lexicon
	templates func() (*template.Template, error) // made when the first page is shown
}

// New returns a site, or says which text or file is wrong. A wrong template is an error of all pages.
func New(o Options) (*Site, error) {
	s := &Site{tongue: map[text.Lang]tongue{}, assets: map[string][]byte{}, turns: newTurns()}
	sub, err := fs.Sub(frame, "assets")
	if err != nil {
		return nil, err
	}
	templates, err := fs.Sub(frame, "templates")
	if err != nil {
		return nil, err
	}
	files := append([]fs.FS{templates, sub}, o.Files...)
	for _, f := range files {
		if err := s.collect(f); err != nil {
			return nil, err
		}
	}
	s.parsed = sync.OnceValues(func() (*template.Template, error) { return parse(s.funcs("", nil), files) })
	s.hash = hashOf(s.assets)
	for _, lang := range languages {
		words, err := readWords(wordFiles, lang)
		if err != nil {
			return nil, err
		}
		s.tongue[lang] = tongue{words: words}
	}
	return s.With(o), nil
}

// With returns a site of the same templates, texts and files, which are not read again, with other options.
func (s *Site) With(o Options) *Site {
	if o.Name == nil {
		o.Name = func() string { return "xiaozhi" }
	}
	if o.Zone == nil {
		o.Zone = func() *time.Location { return time.Local }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	other := &Site{o: o, parsed: s.parsed, tongue: map[text.Lang]tongue{}, assets: s.assets, hash: s.hash, turns: newTurns()}
	for lang, t := range s.tongue {
		other.tongue[lang] = tongue{t.words, sync.OnceValues(func() (*template.Template, error) {
			parsed, err := s.parsed()
			if err != nil {
				return nil, err
			}
			all, err := parsed.Clone()
			if err != nil {
				return nil, err
			}
			return all.Funcs(other.funcs(lang, t.words)), nil
		})}
	}
	return other
}

// collect takes the assets of a folder.
func (s *Site) collect(files fs.FS) error {
	names, err := fs.Glob(files, "*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if kinds[path.Ext(name)] == "" {
			continue
		}
		if s.assets[name] != nil {
			return fmt.Errorf("two assets are called %s", name)
		}
		if s.assets[name], err = fs.ReadFile(files, name); err != nil {
			return err
		}
	}
	return nil
}

// parse reads the templates of folders.
func parse(funcs template.FuncMap, folders []fs.FS) (*template.Template, error) {
	all := template.New("").Option("missingkey=error").Funcs(funcs)
	for _, files := range folders {
		names, err := fs.Glob(files, "*.html")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			raw, err := fs.ReadFile(files, name)
			if err != nil {
				return nil, err
			}
			if _, err := all.Parse(string(raw)); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return all, nil
}

// hashOf returns one that changes with any of the files.
func hashOf(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %d\n", name, len(files[name]))
		h.Write(files[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Content is the part of a page that differs from page to page.
type Content struct {
	Title string // in the language of the page, without the server's name
	Data  any
	Form  *Form // nil: an empty one

	Trouble string // why there are no rows, of a page that shows a list; "": there are as many as there should be
}

// View is the value that templates are given.
type View struct {
	Content
	Site   *Site
	Lang   text.Lang
	Theme  string // "light", "dark", "" as the system has it
	Path   string // of the page, with its query
	Person account.Person
	Notice string // what was done before the page was asked for
	Nav    []Link
	Server string
	Chrome bool // with navigation: somebody has logged in
	Stale  bool // the password must be shown again where a secret is typed
}

// Link is one in the navigation.
type Link struct {
	Path, Text, Icon string
	Here             bool
}

// view prepares a page for who asks.
func (s *Site) view(r *http.Request, c Content) *View {
	if c.Form == nil {
		c.Form = &Form{}
	}
	v := &View{Content: c, Site: s, Lang: Lang(r), Theme: themeOf(r), Path: r.URL.RequestURI(), Person: access.PersonOf(r), Server: s.o.Name()}
	v.Chrome = v.Person.Name != ""
	if v.Chrome {
		v.Stale = v.Person.Proven(s.o.Now()) != nil
		v.Nav = s.nav(v.Lang, v.Person, r.URL.Path)
	}
	return v
}

// Show answers with a page. A form with mistakes makes it 422.
func (s *Site) Show(w http.ResponseWriter, r *http.Request, name string, c Content) {
	status := http.StatusOK
	if c.Form != nil && !c.Form.Valid() {
		status = http.StatusUnprocessableEntity
	}
	s.show(w, r, status, name, c)
}

func (s *Site) show(w http.ResponseWriter, r *http.Request, status int, name string, c Content) {
	v := s.view(r, c)
	v.Notice = s.takeNotice(w, r)
	keepAsked(w, r)
	body, err := s.render(v, name)
	if err != nil {
		s.broken(w, r, err)
		return
	}
	access.PageHeaders(w, r)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	endTurn(r)
	_, _ = w.Write(body) // the browser may be gone
}

// InTurn waits until it is the turn of something of a page to be made, or for a quarter of a second. done ends it.
func (s *Site) InTurn(ctx context.Context) (done func()) { return s.turns.take(ctx) }

// Fragment returns a part of a page, for what is live in it.
func (s *Site) Fragment(r *http.Request, name string, data any) (string, error) {
	body, err := s.render(s.view(r, Content{Data: data}), name)
	return string(body), err
}

// pageSize is that of most pages, in bytes.
const pageSize = 16 << 10

func (s *Site) render(v *View, name string) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, pageSize))
	templates, err := s.tongue[v.Lang].templates()
	if err != nil {
		return nil, err
	}
	if err := templates.ExecuteTemplate(b, name, v); err != nil {
		return nil, fmt.Errorf("page %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// Say returns a text in the language of who asks.
func (s *Site) Say(r *http.Request, id string, args ...any) string {
	return s.tongue[Lang(r)].words.say(id, args...)
}

// Done leads to a page that says what was done, by the id of a text.
func (s *Site) Done(w http.ResponseWriter, r *http.Request, to, id string, args ...string) {
	giveNotice(w, id, args)
	Redirect(w, r, to)
}

// Redirect leads to another page of the console by GET.
func Redirect(w http.ResponseWriter, r *http.Request, to string) {
	if !Inside(to) {
		to = Home
	}
	access.PageHeaders(w, r)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// Home is where the console begins; Prefix is before all of its paths.
const (
	Prefix = "/console/"
	Home   = Prefix + "overview"
)

// Inside reports whether a path is one of the console, and not another host's.
func Inside(to string) bool {
	return strings.HasPrefix(to, Prefix) && !strings.ContainsAny(to, "\\\r\n") && !strings.Contains(to, "//") && !strings.Contains(to, "/..")
}

// back is the part of a query that leads back here, or to the page from which a form was sent; "" where that is unknown.
func back(r *http.Request) string {
	to := r.URL.RequestURI()
	if r.Method != http.MethodGet {
		from, err := url.Parse(r.Referer())
		if err != nil || from.Host != r.Host || !Inside(from.RequestURI()) {
			return ""
		}
		to = from.RequestURI()
	}
	return "?to=" + template.URLQueryEscaper(to)
}
