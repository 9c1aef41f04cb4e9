package ui

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"golang.org/x/text/language"

	"xiaozhi/internal/text"
)

// Names of cookies that hold no secret.
const (
	langCookie   = "lang"
	themeCookie  = "theme"
	noticeCookie = "notice"
)

const year = 365 * 24 * 60 * 60 // seconds

var matcher = language.NewMatcher([]language.Tag{language.English, language.Chinese})

// Lang returns the language of who asks: ?lang=, else the one that was chosen, else what the browser prefers.
func Lang(r *http.Request) text.Lang {
	if l, ok := parseLang(r.URL.Query().Get("lang")); ok {
		return l
	}
	if c, err := r.Cookie(langCookie); err == nil {
		if l, ok := parseLang(c.Value); ok {
			return l
		}
	}
	wanted, _, err := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if err != nil || len(wanted) == 0 {
		return languages[0]
	}
	_, at, _ := matcher.Match(wanted...)
	return languages[at]
}

func parseLang(tag string) (text.Lang, bool) {
	l := text.TagOf(tag)
	switch {
	case l.IsChinese():
		return text.Chinese, true
	case l.IsEnglish():
		return text.English, true
	}
	return "", false
}

func themeOf(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "light" && c.Value != "dark" {
		return ""
	}
	return c.Value
}

// Chosen returns the language that a form has in its field lang, else that of who asks.
func Chosen(r *http.Request, f *Form) text.Lang {
	if l, ok := parseLang(f.Get("lang")); ok {
		return l
	}
	return Lang(r)
}

// KeepLang keeps the language that a form has in its field lang for the pages that follow.
func KeepLang(w http.ResponseWriter, r *http.Request, f *Form) {
	if l, ok := parseLang(f.Get("lang")); ok {
		setCookie(w, r, langCookie, string(l), year)
	}
}

// keepChoice keeps language and colours in the browser.
func keepChoice(w http.ResponseWriter, r *http.Request, f *Form) {
	KeepLang(w, r, f)
	switch theme := f.Get("theme"); theme {
	case "light", "dark":
		setCookie(w, r, themeCookie, theme, year)
	case "system":
		setCookie(w, r, themeCookie, "", -1)
	}
}

// keepAsked keeps the language that the address of a page asks for: the pages that its links and forms lead to have it too.
func keepAsked(w http.ResponseWriter, r *http.Request) {
	asked, ok := parseLang(r.URL.Query().Get("lang"))
	if c, err := r.Cookie(langCookie); ok && (err != nil || c.Value != string(asked)) {
		setCookie(w, r, langCookie, string(asked), year)
	}
}

func setCookie(w http.ResponseWriter, r *http.Request, name, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: Prefix, MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	})
}

// notice is a text that the next page shows.
type notice struct {
	ID   string
	Args []string
}

const maxNotice = 1024

func giveNotice(w http.ResponseWriter, id string, args []string) {
	raw, err := json.Marshal(notice{id, args})
	if err != nil || len(raw) > maxNotice {
		return // a page without it is still right
	}
	http.SetCookie(w, &http.Cookie{
		Name: noticeCookie, Value: base64.RawURLEncoding.EncodeToString(raw), Path: Prefix, MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// takeNotice returns the text that was given, and takes it away.
func (s *Site) takeNotice(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(noticeCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: noticeCookie, Path: Prefix, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	var n notice
	raw, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || json.Unmarshal(raw, &n) != nil {
		return ""
	}
	format, there := s.tongue[Lang(r)].words[n.ID]
	if !there || strings.Count(format, "%") != len(n.Args) {
		return ""
	}
	args := make([]any, len(n.Args))
	for i, a := range n.Args {
		args[i] = a
	}
	return s.Say(r, n.ID, args...)
}
