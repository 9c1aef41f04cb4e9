package access

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/text/message"
)

// Limits of what people send, in bytes: a prompt of 32 KiB takes six times that where all its signs are escaped.
const (
	maxBody     = 64 << 10
	maxDocument = 256 << 10 // of who has shown who he is
)

// credentials come as the body of a request.
type credentials struct {
	Code     string `json:"code"` // of setup, or of an invitation
	Name     string `json:"name"`
	Password string `json:"password"`
	Second   string `json:"second"` // code of the second factor, or for recovery
}

// person is somebody, for programs.
type person struct {
	Name     string     `json:"name"`
	Shown    string     `json:"shown"`
	Role     string     `json:"role"`
	Second   bool       `json:"second,omitempty"` // there is a second factor
	Disabled *time.Time `json:"disabled,omitempty"`
}

// Routes are those of accounts themselves.
func (g *Guard) Routes() []Route {
	if g.o.Accounts == nil {
		return nil
	}
	open := func(pattern string, f func(w http.ResponseWriter, r *http.Request, c credentials) error) Route {
		return Route{Pattern: pattern, For: Anyone, Handler: taking(g, f)}
	}
	self := account.Need{Role: account.Viewer, Scope: account.Read}
	routes := []Route{
		open("POST /api/v1/setup", g.setup),
		open("POST /api/v1/login", g.login),
		open("POST /api/v1/join", g.join),
		{Pattern: "POST /api/v1/logout", For: People, Need: self, Handler: http.HandlerFunc(g.logout)},
		{Pattern: "POST /api/v1/prove", For: People, Need: self, Handler: taking(g, g.prove)},
		{Pattern: "GET /api/v1/me", For: People, Need: self, Handler: http.HandlerFunc(g.me)},
	}
	return slices.Concat(routes, own{g}.routes(), g.peopleRoutes())
}

// taking reads the body of a request, if there is one. Only JSON is taken, which forms of other pages cannot send.
func taking[T any](g *Guard, f func(w http.ResponseWriter, r *http.Request, body T) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		empty := r.Method == http.MethodDelete && r.ContentLength == 0
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); !empty && (err != nil || kind != "application/json") {
			answer(w, http.StatusUnsupportedMediaType, refusal{"access/no-json", message.Both("access/no-json")})
			return
		}
		if g.foreign.Check(r) != nil {
			g.refuse(w, r, account.ErrForbidden)
			return
		}
		var c T
		in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		if err := in.Decode(&c); !empty && (err != nil || in.More()) {
			answer(w, http.StatusBadRequest, refusal{"access/no-json", message.Both("access/no-json")})
			return
		}
		if err := f(w, r, c); err != nil {
			g.refuse(w, r, err)
		}
	})
}

func (g *Guard) from(r *http.Request) account.Origin {
	return account.Origin{Remote: g.o.Remote(r), Browser: r.UserAgent()}
}

func (g *Guard) setup(w http.ResponseWriter, r *http.Request, c credentials) error {
	return done(w, Door{g}.Found(w, r, c.Code, account.NewUser{Name: c.Name, Password: c.Password}))
}

func (g *Guard) join(w http.ResponseWriter, r *http.Request, c credentials) error {
	return done(w, Door{g}.Join(w, r, c.Code, account.NewUser{Name: c.Name, Password: c.Password}))
}

// login begins a new session, whatever cookie there was.
func (g *Guard) login(w http.ResponseWriter, r *http.Request, c credentials) error {
	return done(w, Door{g}.Enter(w, r, c.Name, account.Proof{Password: c.Password, Code: c.Second}))
}

// prove puts another session in the place of the one whose password is shown again.
func (g *Guard) prove(w http.ResponseWriter, r *http.Request, c credentials) error {
	_, err := Door{g}.ShowAgain(w, r, account.Proof{Password: c.Password, Code: c.Second})
	return done(w, err)
}

// done answers what has nothing to tell, unless it failed.
func done(w http.ResponseWriter, err error) error {
	if err == nil {
		answer(w, http.StatusOK, struct{}{})
	}
	return err
}

func (g *Guard) logout(w http.ResponseWriter, r *http.Request) {
	if err := done(w, Door{g}.Leave(w, r)); err != nil {
		g.refuse(w, r, err)
	}
}

// forgetBrowser answers a browser whose session has ended.
func (g *Guard) forgetBrowser(w http.ResponseWriter, r *http.Request) {
	g.setCookie(w, r, "")
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	answer(w, http.StatusOK, struct{}{})
}

func (g *Guard) me(w http.ResponseWriter, r *http.Request) {
	p := PersonOf(r)
	answer(w, http.StatusOK, person{Name: p.Name, Shown: p.Shown, Role: string(p.Role), Second: p.Second})
}
