package access

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/lockout"
	"xiaozhi/store"
)

const good = "correct horse battery"

// rig is a server with an account of each role, and the cookie and a token of each.
type rig struct {
	t        *testing.T
	accounts *account.Service
	db       *store.Store
	guard    *Guard
	cookies  map[string]*http.Cookie
	tokens   map[string]string // by role and scope
	log      bytes.Buffer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, cookies: map[string]*http.Cookie{}, tokens: map[string]string{}}
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r.db, r.accounts = db, account.New(account.Options{Store: db, Seal: plainSealer{}, Cost: account.Cost{Memory: 64, Passes: 1, Lanes: 1}})
	r.guard = New(Options{
		Accounts: r.accounts, Device: strings.ToLower, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		OwnHost: func(q *http.Request) bool { return q.Host == "example.com" || addressed(q) },
	})
	return r
}

// plainSealer seals nothing: that is tested where it is done.
type plainSealer struct{}

func (plainSealer) Seal(_ context.Context, _, value string) (string, error) { return value, nil }
func (plainSealer) Unseal(_, text string) (string, error)                   { return text, nil }

// people adds an account of each role.
func (r *rig) people() *rig {
	r.t.Helper()
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	for _, role := range account.Roles() {
		name := "the-" + string(role)
		if err := r.accounts.Add(r.t.Context(), by, account.NewUser{Name: name, Role: role, Password: good}); err != nil {
			r.t.Fatal(err)
		}
		secret, err := r.accounts.Login(r.t.Context(), name, account.Proof{Password: good}, account.Origin{})
		if err != nil {
			r.t.Fatal(err)
		}
		r.cookies[string(role)] = &http.Cookie{Name: "xiaozhi", Value: secret}
		for _, scope := range []account.Scope{account.Read, account.Admin} {
			if r.tokens[string(role)+" "+string(scope)], err = r.accounts.NewToken(r.t.Context(), by, name, account.NewToken{Label: "x", Scopes: []account.Scope{scope}}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return r
}

// slowly has each look at the clock find a while later, so that nobody asks too often.
func (r *rig) slowly() *rig {
	at := time.Now()
	r.guard.o.Now = func() time.Time {
		at = at.Add(time.Second / perSecond)
		return at
	}
	return r
}

func (r *rig) mux(routes ...Route) http.Handler {
	r.t.Helper()
	mux, err := r.guard.Mux(routes)
	if err != nil {
		r.t.Fatal(err)
	}
	return mux
}

type request func(*http.Request)

func cookie(c *http.Cookie) request {
	return func(r *http.Request) { r.AddCookie(c); r.Header.Set("Origin", "http://"+r.Host) }
}
func bearer(t string) request {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+t) }
}
func with(k, v string) request { return func(r *http.Request) { r.Header.Set(k, v) } }
func from(i int) request {
	return func(r *http.Request) { r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", i) }
}
func overTLS(r *http.Request) { r.TLS = &tls.ConnectionState{} }

func ask(h http.Handler, pattern, body string, how ...request) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(pattern, " ")
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for _, f := range how {
		f(req)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// TestEveryRouteWithEveryRole walks what is registered: who declares a need is reached by those who meet it alone.
func TestEveryRouteWithEveryRole(t *testing.T) {
	r := newRig(t).people().slowly()
	owned := func(*http.Request) (string, error) { return "somebody else", nil }
	reached := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	routes := append(r.guard.Routes(),
		Route{Pattern: "POST /say", For: People, Need: account.Need{Role: account.Member, Scope: account.Say, Own: true}, Owner: owned},
		Route{Pattern: "POST /secrets", For: People, Need: account.Need{Role: account.Owner, Scope: account.Admin, Fresh: true}},
	)
	for i := range routes {
		routes[i].Handler = reached
	}
	mux, people := r.mux(routes...), 0
	for _, route := range routes {
		if route.For != People {
			continue
		}
		people++
		try := func(name string, p account.Person, anonymous bool, how ...request) {
			want := http.StatusTeapot
			owner := ""
			if route.Owner != nil {
				owner = "somebody else"
			}
			if anonymous {
				want = http.StatusUnauthorized
			} else if p.May(route.Need, owner, p.Proved) != nil {
				want = http.StatusForbidden
			}
			if w := ask(mux, route.Pattern, "{}", how...); w.Code != want {
				t.Errorf("%s as %s: %d, want %d", route.Pattern, name, w.Code, want)
			}
		}
		try("a stranger", account.Person{}, true)
		try("an invented cookie", account.Person{}, true, cookie(&http.Cookie{Name: "xiaozhi", Value: "x"}))
		try("an invented token", account.Person{}, true, bearer("xz_x"), from(people)) // of one address few are looked at
		for role, c := range r.cookies {
			try(role, account.Person{ID: "x", Role: account.Role(role)}, false, cookie(c))
		}
		for name, token := range r.tokens {
			role, scope, _ := strings.Cut(name, " ")
			try("token of "+name, account.Person{ID: "x", Role: account.Role(role), Scopes: []account.Scope{account.Scope(scope)}}, false, bearer(token))
		}
	}
	if people < 6 {
		t.Errorf("%d routes of people were walked", people)
	}
}

// TestDeclarations: what does not say who it is for, or says it wrongly, is not served.
func TestDeclarations(t *testing.T) {
	h := http.NotFoundHandler()
	owner := func(*http.Request) (string, error) { return "", nil }
	for name, route := range map[string]Route{
		"nothing":          {Pattern: "/x", Handler: h},
		"unknown audience": {Pattern: "/x", For: People + 1, Handler: h},
		"no handler":       {Pattern: "/x", For: Anyone},
		"no role":          {Pattern: "/x", For: People, Handler: h},
		"no scope":         {Pattern: "/x", For: People, Need: account.Need{Role: account.Viewer}, Handler: h},
		"need of devices":  {Pattern: "/x", For: Devices, Need: account.Need{Role: account.Viewer}, Handler: h},
		"own of nobody":    {Pattern: "/x", For: People, Need: account.Need{Role: account.Member, Scope: account.Say, Own: true}, Handler: h},
		"owner unasked":    {Pattern: "/x", For: People, Need: account.Need{Role: account.Member, Scope: account.Say}, Owner: owner, Handler: h},
	} {
		if _, err := New(Options{}).Mux([]Route{route}); err == nil || !strings.Contains(err.Error(), route.Pattern) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOtherPages: a page of somebody else reaches nothing with the cookie of a person who looks at it.
func TestOtherPages(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	just := func(q *http.Request) { q.AddCookie(r.cookies["owner"]) }
	for _, c := range []struct {
		name, pattern, body string
		want                int
		how                 []request
	}{
		{"own page", "POST /api/v1/prove", `{"password":"` + good + `"}`, 200, []request{just, with("Origin", "http://example.com")}},
		{"no origin", "POST /api/v1/prove", "{}", 403, []request{just}},
		{"null", "POST /api/v1/prove", "{}", 403, []request{just, with("Origin", "null")}},
		{"other page", "POST /api/v1/prove", "{}", 403, []request{just, with("Origin", "http://evil.example")}},
		{"other port", "POST /api/v1/prove", "{}", 403, []request{just, with("Origin", "http://example.com:81")}},
		{"other site", "POST /api/v1/prove", "{}", 403, []request{just, with("Origin", "http://evil.example"), with("Sec-Fetch-Site", "cross-site")}},
		{"login by another page", "POST /api/v1/login", "{}", 403, []request{with("Origin", "http://evil.example")}},
		{"login by a form", "POST /api/v1/login", "{}", 415, []request{with("Content-Type", "text/plain")}},
		{"logout by a link", "GET /api/v1/logout", "", 405, []request{just}},
		{"another name", "GET /api/v1/nothing", "", 421, []request{func(q *http.Request) { q.Host = "evil.example" }}},
		{"large", "POST /api/v1/login", `{"name":"` + strings.Repeat("x", maxBody) + `"}`, 400, nil},
	} {
		if w := ask(mux, c.pattern, c.body, c.how...); w.Code != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, w.Code, w.Body, c.want)
		}
	}
}

// TestNoSuchPath: a program that asks at a path that there is not, or by another method, reads so in JSON, and which ones are taken.
func TestNoSuchPath(t *testing.T) {
	r := newRig(t)
	mux := r.mux(append(r.guard.Routes(), Route{Pattern: "/", For: Anyone, Handler: http.NotFoundHandler()})...)
	for request, want := range map[string]struct {
		status      int
		code, allow string
	}{
		"GET /api/v1/nothing":   {404, "access/no-path", ""},
		"POST /api/v1/":         {404, "access/no-path", ""},
		"PUT /api/v1/login":     {405, "access/method", "POST"},
		"OPTIONS /api/v1/users": {405, "access/method", "GET, POST"},
	} {
		w := ask(mux, request, "")
		if w.Code != want.status || w.Header().Get("Allow") != want.allow || !strings.Contains(w.Body.String(), `"code":"`+want.code+`"`) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s", request, w.Code, w.Header(), w.Body)
		}
	}
}

// TestFromSetupToLogout is the way of the first owner, with what the answers tell browsers.
func TestFromSetupToLogout(t *testing.T) {
	r := newRig(t)
	mux := r.mux(r.guard.Routes()...)
	body := func(code string) string { return `{"code":"` + code + `","name":"Ann","password":"` + good + `"}` }
	if w := ask(mux, "POST /api/v1/setup", body("0000000000")); w.Code != 401 || len(w.Result().Cookies()) > 0 {
		t.Errorf("wrong code: %d %s", w.Code, w.Body)
	}
	code := r.accounts.SetupCode(t.Context())
	for _, c := range []struct {
		how  request
		name string
	}{{func(*http.Request) {}, "xiaozhi"}, {overTLS, "__Host-xiaozhi"}} {
		path := "POST /api/v1/setup"
		if r.accounts.HasOwner(t.Context()) || c.name != "xiaozhi" {
			path = "POST /api/v1/login"
		}
		w := ask(mux, path, body(code), c.how)
		if w.Code != 200 || len(w.Result().Cookies()) != 1 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		k := w.Result().Cookies()[0]
		if k.Name != c.name || !k.HttpOnly || k.SameSite != http.SameSiteLaxMode || k.Path != "/" || k.Domain != "" || k.Secure != (c.name != "xiaozhi") {
			t.Errorf("cookie %+v", k)
		}
		if h := w.Header(); h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%v", h)
		}
		if w := ask(mux, "GET /api/v1/me", "", c.how, cookie(k)); w.Code != 200 || !strings.Contains(w.Body.String(), `"role":"owner"`) {
			t.Errorf("me: %d %s", w.Code, w.Body)
		}
		if w := ask(mux, "GET /api/v1/users", "", c.how, cookie(k)); strings.Contains(w.Body.String(), "argon2") || !strings.Contains(w.Body.String(), "ann") {
			t.Errorf("users: %s", w.Body)
		}
		own := with("Origin", map[bool]string{true: "https", false: "http"}[k.Secure]+"://example.com")
		if w = ask(mux, "POST /api/v1/logout", "", c.how, cookie(k), own); w.Code != 200 || w.Header().Get("Clear-Site-Data") == "" || w.Result().Cookies()[0].MaxAge >= 0 {
			t.Errorf("logout: %d %v", w.Code, w.Header())
		}
		if w := ask(mux, "GET /api/v1/me", "", c.how, cookie(k)); w.Code != 401 {
			t.Errorf("after logout: %d", w.Code)
		}
	}
	if w := ask(mux, "POST /api/v1/setup", body(code)); w.Code == 200 {
		t.Error("a second setup")
	}
}

// TestGuessesAreAnswered: who guesses too often hears how long to wait.
func TestGuessesAreAnswered(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	for i := range 6 {
		w := ask(mux, "POST /api/v1/login", `{"name":"the-owner","password":"wrong one"}`)
		if want := map[bool]int{true: 429, false: 401}[i == 5]; w.Code != want || (w.Header().Get("Retry-After") != "") != (want == 429) {
			t.Errorf("%d: %d %v", i, w.Code, w.Header())
		}
	}
}

// TestPanics: who asked gets a number that is in the log, and nothing of the program.
func TestPanics(t *testing.T) {
	r := newRig(t)
	fail := func(err any) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(err) })
	}
	w := ask(r.mux(Route{Pattern: "/x", For: Anyone, Handler: fail("secret of the program")}), "GET /x", "")
	body, _ := io.ReadAll(w.Body)
	if w.Code != 500 || bytes.Contains(body, []byte("secret")) || !strings.Contains(r.log.String(), "secret of the program") {
		t.Errorf("%d %s %s", w.Code, body, r.log.String())
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Error("an aborted answer is no failure")
		}
	}()
	ask(r.mux(Route{Pattern: "/x", For: Anyone, Handler: fail(http.ErrAbortHandler)}), "GET /x", "")
}

// TestTokenGuesses: from an address with many wrong tokens only those are looked at that were right there before, the
// admin token too; other addresses go on.
func TestTokenGuesses(t *testing.T) {
	r := newRig(t).people().slowly()
	r.guard.SetAdmin("0123456789abcdef0123456789abcdef")
	mux := r.mux(r.guard.Routes()...)
	me := func(token string, address int) int {
		return ask(mux, "GET /api/v1/me", "", bearer(token), from(address)).Code
	}
	if got := me(r.tokens["viewer read"], 1); got != 200 {
		t.Fatal(got)
	}
	for range lockout.MaxGuesses {
		if got := me("xz_wrong", 1); got != 401 {
			t.Fatal(got)
		}
	}
	for name, c := range map[string]struct {
		token         string
		address, want int
	}{
		"a wrong one": {"xz_wrong", 1, 429}, "one that was never right there": {r.tokens["owner admin"], 1, 429},
		"the admin token": {"0123456789abcdef0123456789abcdef", 1, 429}, "one that was": {r.tokens["viewer read"], 1, 200},
		"elsewhere": {r.tokens["owner admin"], 2, 200},
	} {
		if got := me(c.token, c.address); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if w := ask(mux, "GET /api/v1/me", "", r.as("member"), from(1)); w.Code != 200 {
		t.Errorf("a session: %d", w.Code)
	}
}

// FuzzCredentials: nobody is let in but by a cookie or a token that was given out, whatever headers hold.
func FuzzCredentials(f *testing.F) {
	for _, seed := range [][2]string{
		{"Bearer xz_0123456789abcdef", "xiaozhi=abc"}, {"bearer  xz_", "xiaozhi=\"\"; xiaozhi=x"}, {"Basic YTpi", "__Host-xiaozhi=x"}, {"Bearer ", ";;=="}, {"Bearer \xff", "xiaozhi=%00"},
	} {
		f.Add(seed[0], seed[1])
	}
	db, err := store.Open(f.Context(), store.Options{Path: filepath.Join(f.TempDir(), "x.db")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = db.Close() })
	accounts := account.New(account.Options{Store: db, Seal: plainSealer{}, Cost: account.Cost{Memory: 64, Passes: 1, Lanes: 1}})
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	if err := accounts.Add(f.Context(), by, account.NewUser{Name: "anna", Role: account.Owner, Password: good}); err != nil {
		f.Fatal(err)
	}
	guard := New(Options{Accounts: accounts, Log: slog.New(slog.DiscardHandler)})
	guard.SetAdmin("0123456789abcdef0123456789abcdef")
	f.Fuzz(func(t *testing.T, authorization, cookies string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/me", nil)
		r.Header.Set("Authorization", authorization)
		r.Header.Set("Cookie", cookies)
		guard.guesses = lockout.New() // each is looked at
		if p, err := guard.who(r); err == nil && authorization != "Bearer 0123456789abcdef0123456789abcdef" {
			t.Errorf("%q and %q are %+v", authorization, cookies, p)
		} else if err != nil && !errors.Is(err, account.ErrNoSession) && !errors.Is(err, account.ErrNoToken) {
			t.Errorf("%q and %q: %v", authorization, cookies, err)
		}
	})
}
