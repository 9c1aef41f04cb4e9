package ui

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"xiaozhi/internal/access"
	"xiaozhi/internal/text"
)

// maxForm limits a form, in bytes.
const maxForm = 1 << 20

// maxField limits what is typed into one field, in characters, where the page says nothing else.
const maxField = 10000

// Form holds the values that somebody has typed, with the mistakes in them. Its zero value is an empty form.
type Form struct {
	values   url.Values
	mistakes []Mistake
}

// Mistake says what is wrong with a field.
type Mistake struct {
	Field string // its name; "": of the whole form
	Text  string
}

// Filled returns a form with values in it, by pairs of name and value.
func Filled(pairs ...string) *Form {
	f := &Form{values: url.Values{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.values.Add(pairs[i], pairs[i+1])
	}
	return f
}

// Form reads what was typed. Not ok: it has been answered.
func (s *Site) Form(w http.ResponseWriter, r *http.Request) (f *Form, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := r.ParseForm()
	if err == nil && strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		err = r.ParseMultipartForm(maxForm)
	}
	if err != nil {
		status, id := http.StatusBadRequest, "frame/no-form"
		if _, long := errors.AsType[*http.MaxBytesError](err); long {
			status, id = http.StatusRequestEntityTooLarge, "frame/too-long"
		}
		s.problem(w, r, status, s.Say(r, id, maxForm>>10))
		return nil, false
	}
	f = &Form{values: r.PostForm}
	for name, all := range f.values {
		for i, v := range all {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				all[i] = strings.ReplaceAll(strings.ToValidUTF8(v, "\ufffd"), "\x00", "\ufffd")
			}
			if utf8.RuneCountInString(v) > maxField && !strings.HasPrefix(name, "long-") {
				f.Wrong(name, s.Say(r, "frame/field-long", maxField))
			}
		}
	}
	return f, true
}

// Get returns what was typed into a field, without space around it.
func (f *Form) Get(name string) string { return strings.TrimSpace(f.values.Get(name)) }

// Raw returns what was typed into a field as it is, for passwords.
func (f *Form) Raw(name string) string { return f.values.Get(name) }

// All returns what was chosen of several.
func (f *Form) All(name string) []string { return f.values[name] }

// Set puts a value in the place of what was typed into a field.
func (f *Form) Set(name, value string) {
	if f.values == nil {
		f.values = url.Values{}
	}
	f.values.Set(name, value)
}

// Has reports whether a value was chosen in a field.
func (f *Form) Has(name, value string) bool {
	for _, v := range f.values[name] {
		if v == value {
			return true
		}
	}
	return false
}

// Wrong notes a mistake in a field, in a sentence; "": in the whole form.
func (f *Form) Wrong(field, what string) {
	f.mistakes = append(f.mistakes, Mistake{field, text.Sentence(what)})
}

// Valid reports whether there is no mistake.
func (f *Form) Valid() bool { return len(f.mistakes) == 0 }

// Mistakes returns all mistakes.
func (f *Form) Mistakes() []Mistake { return f.mistakes }

// Mistake returns what is wrong with a field, "": nothing.
func (f *Form) Mistake(field string) string {
	for _, m := range f.mistakes {
		if m.Field == field {
			return m.Text
		}
	}
	return ""
}

// Page is a route of the console that shows or does something for somebody who has logged in. Pages that only show are made one after
// the other.
func (s *Site) Page(pattern string, route access.Route, h http.HandlerFunc) access.Route {
	if strings.HasPrefix(pattern, "GET ") {
		h = s.turns.inTurn(h)
	}
	route.Pattern, route.For, route.Handler, route.Refused = pattern, access.People, h, s.Refused
	return route
}
