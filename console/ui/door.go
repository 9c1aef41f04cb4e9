package ui

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
)

// door holds the content of the pages by which people come in and go.
type door struct {
	To     string // where they go on
	Second bool   // the code of a second factor is asked for
}

// Routes are those of the frame: files, language and colours, logging in and out, the password again, invitations.
func (s *Site) Routes(g access.Door) []access.Route {
	s.door = g
	open := func(pattern string, h http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.Anyone, Handler: g.OwnPage(h, s.Refused)}
	}
	anybody := access.Route{Need: account.Need{Role: account.Viewer, Scope: account.Admin}}
	return []access.Route{
		open("GET "+Prefix+"assets/", s.serveAsset),
		open("POST "+Prefix+"preferences", s.preferences),
		open("GET "+Prefix+"login", func(w http.ResponseWriter, r *http.Request) {
			if s.o.Owned != nil && !s.o.Owned(r.Context()) {
				Redirect(w, r, Prefix+"setup")
				return
			}
			s.Show(w, r, "login", Content{Title: s.Say(r, "door/login"), Data: door{To: onward(r.URL.Query().Get("to"))}})
		}),
		open("POST "+Prefix+"login", s.shown("login", func(w http.ResponseWriter, r *http.Request, f *Form) error {
			return g.Enter(w, r, f.Get("name"), account.Proof{Password: f.Raw("password"), Code: f.Get("second")})
		})),
		open("GET "+Prefix+"join", func(w http.ResponseWriter, r *http.Request) {
			s.Show(w, r, "join", Content{Title: s.Say(r, "door/join"), Form: Filled("code", r.URL.Query().Get("code"))})
		}),
		open("POST "+Prefix+"join", s.shown("join", func(w http.ResponseWriter, r *http.Request, f *Form) error {
			return g.Join(w, r, f.Get("code"), account.NewUser{Name: f.Get("name"), Password: f.Raw("password")})
		})),
		s.Page("GET "+Prefix+"prove", anybody, func(w http.ResponseWriter, r *http.Request) {
			s.Show(w, r, "prove", Content{Title: s.Say(r, "door/prove"), Data: door{onward(r.URL.Query().Get("to")), access.PersonOf(r).Second}})
		}),
		s.Page("POST "+Prefix+"prove", anybody, s.shown("prove", func(w http.ResponseWriter, r *http.Request, f *Form) error {
			_, err := g.ShowAgain(w, r, account.Proof{Password: f.Raw("password"), Code: f.Get("second")})
			return err
		})),
		s.Page("POST "+Prefix+"logout", anybody, func(w http.ResponseWriter, r *http.Request) {
			if err := g.Leave(w, r); err != nil {
				s.Refused(w, r, err)
				return
			}
			Redirect(w, r, Prefix+"login")
		}),
	}
}

// shown is a page on which somebody shows who they are; it goes on where they wanted to be.
func (s *Site) shown(page string, f func(w http.ResponseWriter, r *http.Request, f *Form) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		form, ok := s.Form(w, r)
		if !ok {
			return
		}
		d := door{To: onward(form.Get("to")), Second: access.PersonOf(r).Second || form.Has("second", form.Raw("second")) && page == "login"}
		err := f(w, r, form)
		if err == nil {
			Redirect(w, r, d.To)
			return
		}
		if errors.Is(err, account.ErrCodeNeeded) {
			d.Second = true
		}
		if !s.Explain(w, r, form, FieldOf(err), err) {
			return
		}
		s.Show(w, r, page, Content{Title: s.Say(r, "door/"+page), Form: form, Data: d})
	}
}

// Names of the fields by which a form with a secret in it shows the password again.
const (
	AgainField  = "again-password"
	secondField = "again-second"
)

// Again takes the password that was typed again into a form, and returns the request as one of the session that goes on. A
// mistake is noted at its field; without one, a form that has none of it is as it was.
func (s *Site) Again(w http.ResponseWriter, r *http.Request, f *Form) *http.Request {
	if f.Raw(AgainField) == "" {
		return r
	}
	shown, err := s.door.ShowAgain(w, r, account.Proof{Password: f.Raw(AgainField), Code: f.Get(secondField)})
	if err == nil {
		return shown
	}
	field := AgainField
	if errors.Is(err, account.ErrCodeNeeded) {
		field = secondField
	}
	if why := s.Reason(r, err); why != "" {
		f.Wrong(field, why)
	} else {
		s.o.Log.Error("a password cannot be shown again", "err", err)
		f.Wrong(field, s.Say(r, "frame/problem"))
	}
	return r
}

// AsksAgain notes at its field that the password must be shown again. Not ok: that was not the error.
func (s *Site) AsksAgain(r *http.Request, f *Form, err error) (ok bool) {
	if ok = errors.Is(err, account.ErrProveAgain); ok {
		f.Wrong(AgainField, s.Say(r, "door/again-needed"))
	}
	return ok
}

// FieldOf returns the field in which the cause of a refusal was typed.
func FieldOf(err error) string {
	switch {
	case errors.Is(err, account.ErrCodeNeeded):
		return "second"
	case errors.Is(err, account.ErrNoInvite):
		return "code"
	case errors.Is(err, account.ErrNameTaken), errors.Is(err, account.ErrNameBad):
		return "name"
	case errors.Is(err, account.ErrPasswordShort), errors.Is(err, account.ErrPasswordLong), errors.Is(err, account.ErrPasswordKnown):
		return "password"
	}
	return ""
}

// onward returns the page that somebody wanted, where it is one of the console.
func onward(to string) string {
	if !Inside(to) || strings.HasPrefix(to, Prefix+"login") || strings.HasPrefix(to, Prefix+"logout") {
		return Home
	}
	return to
}

// unsaid is an address that names no language: what was chosen counts.
func unsaid(address string) string {
	to, err := url.Parse(address)
	if err != nil {
		return Home
	}
	query := to.Query()
	if query.Has("lang") {
		query.Del("lang")
		to.RawQuery = query.Encode()
	}
	return to.String()
}

// preferences keeps language and colours, and goes back.
func (s *Site) preferences(w http.ResponseWriter, r *http.Request) {
	f, ok := s.Form(w, r)
	if !ok {
		return
	}
	keepChoice(w, r, f)
	Redirect(w, r, unsaid(f.Get("to")))
}
