package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/roster"
	"xiaozhi/store"
)

// secretWords stand in everything that belongs to anna, whom no other member may hear of.
const secretWords = "sesame-of-anna"

// town is a program with people, and with a device of anna's that has talked.
type town struct {
	*App
	t       *testing.T
	data    string
	people  map[string]account.Person
	cookies map[string]*http.Cookie
	ids     []string // of what is anna's
	at      time.Time
	stream  bool // the next requests are for streams
}

func newTown(t *testing.T) *town {
	t.Helper()
	cfg := config.Default()
	cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, []string{"rules"}
	c := &town{t: t, data: t.TempDir(), people: map[string]account.Person{}, cookies: map[string]*http.Cookie{}, at: time.Now()}
	a, err := Build(t.Context(), cfg, Options{PasswordCost: cheap, Data: c.data, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	c.App = a
	by, password := account.Actor{Name: "test", Via: account.ViaCommand}, "correct horse battery"
	for name, role := range map[string]account.Role{"olga": account.Owner, "anna": account.Member, "ben": account.Member, "vera": account.Viewer} {
		c.must(a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: role, Password: password}))
		secret, err := a.accounts.Login(t.Context(), name, account.Proof{Password: password}, account.Origin{})
		c.must(err)
		c.people[name], err = a.accounts.Session(t.Context(), secret)
		c.must(err)
		c.cookies[name] = &http.Cookie{Name: "xiaozhi", Value: secret}
	}
	c.settle(by)
	return c
}

func (c *town) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// settle gives anna a device, with a talk, a letter and an agent.
func (c *town) settle(by account.Actor) {
	ctx, device, talk, turn := c.t.Context(), "24:6f:28:aa:10:02", store.NewID(), store.NewID()
	now := time.Now()
	c.must(c.stored.Devices.Commit(ctx, store.DeviceChange{Save: []store.Identity{{
		ID: device, Address: device, State: store.DevicePaired, Name: secretWords, FirstAt: now, SeenAt: now, SinceAt: now,
	}}}))
	c.must(c.accounts.Give(ctx, by, device, "anna"))
	c.stored.Log.Put(&store.Entry{
		Conversation: store.Conversation{ID: talk, DeviceID: device, BeganAt: now, Title: secretWords},
		Turn:         store.Turn{ID: turn, ConversationID: talk, DeviceID: device, Seq: 1, At: now, Kind: "user"},
		Messages:     []store.Message{{TurnID: turn, Seq: 1, Role: "user", Body: `"` + secretWords + `"`}},
	})
	for range 200 {
		if _, messages, _, err := c.stored.Turns.Get(ctx, turn); err == nil && len(messages) == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	letter, err := c.outside.letters.Send(ctx, mail.Letter{Device: device, Text: secretWords, Source: "test"})
	c.must(err)
	_, err = c.crew.roster.Set(ctx, roster.Author{Name: "anna", ID: c.people["anna"].ID}, "annas", []byte(`{"prompt":"default","language":"en"}`))
	c.must(err)
	paper, err := c.outside.library.Upload(ctx, "annas", "anna", secretWords+".txt", strings.NewReader(secretWords))
	c.must(err)
	c.ids = []string{paper.ID, device, talk, turn, letter.ID, "annas", "anna"}
}

// wildcard is a part of a pattern that stands for an id.
var wildcard = regexp.MustCompile(`\{[a-z]+\}`)

// paths lists the requests that a pattern stands for, with the ids of what is anna's in each place.
func (c *town) paths(pattern string) (method string, all []string) {
	method, path, _ := strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
	all = []string{path}
	for range wildcard.FindAllString(path, -1) {
		var more []string
		for _, p := range all {
			at := wildcard.FindStringIndex(p)
			for _, id := range c.ids {
				more = append(more, p[:at[0]]+id+p[at[1]:])
			}
		}
		all = more
	}
	return method, all
}

// guarded returns a handler of routes, for which nobody asks too often: each look at the clock finds a while later.
func (c *town) guarded(routes []access.Route) http.Handler {
	c.t.Helper()
	c.at = time.Now() // the passwords were shown a moment ago
	h, err := access.New(access.Options{Accounts: c.accounts, Log: slog.New(slog.DiscardHandler), Now: func() time.Time {
		c.at = c.at.Add(time.Second / 30)
		return c.at
	}}).Mux(routes)
	c.must(err)
	return h
}

// ask makes a request of a person, "" is nobody, as a page of the server does.
func (c *town) ask(h http.Handler, who, method, path string, how ...func(*http.Request)) *httptest.ResponseRecorder {
	limit := 10 * time.Second
	if c.stream {
		limit = 30 * time.Millisecond // it never ends by itself
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader("{}"))
	r.Host = "127.0.0.1:8000"
	r.Header.Set("Origin", "http://127.0.0.1:8000")
	r.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(path, "/console") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if k := c.cookies[who]; k != nil {
		r.AddCookie(k)
	}
	for _, f := range how {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// stubbed returns routes of people whose handlers only say that they were reached.
func stubbed(routes []access.Route) []access.Route {
	reached := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	routes = slices.DeleteFunc(slices.Clone(routes), func(r access.Route) bool { return r.For != access.People })
	for i := range routes {
		routes[i].Handler, routes[i].Refused = reached, nil
	}
	return routes
}

// TestRights walks all routes of the program in each way in which somebody could reach what is not theirs. New routes are
// walked too.
func TestRights(t *testing.T) {
	t.Parallel()
	c := newTown(t)
	t.Run("roles", func(t *testing.T) { checkRoles(t, c) })
	t.Run("foreign objects", func(t *testing.T) { checkForeign(t, c) })
	t.Run("origins", func(t *testing.T) { checkOrigins(t, c) })
	t.Run("looks", func(t *testing.T) { checkLooks(t, c) })
}

// checkRoles asks each route of people as nobody, a viewer, members and an owner, for what belongs to a member:
// who reaches it is whom its need lets in.
func checkRoles(t *testing.T, c *town) {
	routes := stubbed(c.allRoutes())
	h, asked := c.guarded(routes), 0
	for _, route := range routes {
		method, paths := c.paths(route.Pattern)
		reached := map[string]bool{}
		for _, path := range paths {
			for _, who := range []string{"", "vera", "ben", "anna", "olga"} {
				asked++
				code := c.ask(h, who, method, path).Code
				reached[who] = reached[who] || code == http.StatusTeapot
				if code != http.StatusTeapot && (who == "" && code != http.StatusUnauthorized || who != "" && code != http.StatusForbidden && code != http.StatusUnauthorized && code != http.StatusNotFound) {
					t.Errorf("%s %s as %q: %d", method, path, who, code)
				}
			}
		}
		need := route.Need
		want := map[string]bool{
			"": false, "vera": need.Role == account.Viewer && !need.Own, "ben": need.Role != account.Owner && !need.Own, "anna": need.Role != account.Owner, "olga": true,
		}
		for who, may := range want {
			nobodys := len(paths) == 1 && need.Own && who == "anna" // the object is found without an id, and may not be there
			if reached[who] != may && !nobodys {
				t.Errorf("%s, need %+v: reached by %q: %v", route.Pattern, need, who, reached[who])
			}
		}
	}
	if asked < 400 {
		t.Errorf("only %d requests", asked)
	}
}

// checkForeign: nothing that belongs to a member is told to another one, a viewer or nobody, by whatever route and
// id; the member hears of it, so the test would see it.
func checkForeign(t *testing.T, c *town) {
	routes := c.allRoutes()
	h, heard := c.guarded(routes), 0
	for _, route := range routes {
		if route.For == access.Devices || route.For == access.Bearers || strings.HasSuffix(route.Pattern, "/logout") {
			continue
		}
		method, paths := c.paths(route.Pattern)
		if method == "" || method != http.MethodGet && len(paths) == 1 {
			continue // acts on one's own account
		}
		c.stream = route.Use == access.Stream
		for _, path := range paths {
			for _, who := range []string{"", "vera", "ben"} {
				w := c.ask(h, who, method, path)
				if strings.Contains(w.Body.String(), secretWords) {
					t.Errorf("%s %s tells %q of what is anna's", method, path, who)
				}
				if route.For == access.People && (who == "" || len(paths) > 1 && route.Need.Own) && w.Code < http.StatusMultipleChoices {
					t.Errorf("%s %s answers %q with %d", method, path, who, w.Code)
				}
			}
			if method == http.MethodGet && strings.Contains(c.ask(h, "anna", method, path).Body.String(), secretWords) {
				heard++
			}
		}
	}
	if heard < 2 {
		t.Errorf("anna hears of hers by %d requests", heard)
	}
}

// checkOrigins: what changes something is reached by a browser's cookie only from a page of the server, and nothing
// by another name of it.
func checkOrigins(t *testing.T, c *town) {
	routes := stubbed(c.allRoutes())
	h := c.guarded(routes)
	for _, route := range routes {
		method, paths := c.paths(route.Pattern)
		for _, origin := range []string{"", "null", "http://evil.example", "http://127.0.0.1:81", "http://127.0.0.1:8000"} {
			for _, site := range []string{"", "same-origin", "none", "same-site", "cross-site"} {
				own := origin == "http://127.0.0.1:8000"
				if origin != "" && !own && (site == "same-origin" || site == "none") {
					continue // no browser says so
				}
				safe := method == http.MethodGet || own && (site == "" || site == "same-origin" || site == "none")
				w := c.ask(h, "olga", method, paths[0], func(r *http.Request) {
					r.Header.Set("Origin", origin)
					r.Header.Set("Sec-Fetch-Site", site)
				})
				if (w.Code == http.StatusTeapot) != safe && w.Code != http.StatusNotFound || !safe && w.Code != http.StatusForbidden {
					t.Errorf("%s from %q, %q: %d", route.Pattern, origin, site, w.Code)
				}
			}
		}
		if w := c.ask(h, "olga", method, paths[0], func(r *http.Request) { r.Host = "evil.example:8000" }); w.Code != http.StatusMisdirectedRequest {
			t.Errorf("%s by another name: %d", route.Pattern, w.Code)
		}
	}
}

// kept is the state of what is on the disk.
func (c *town) kept() string {
	sum := sha256.New()
	c.must(filepath.WalkDir(c.data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintln(sum, path, len(data))
		sum.Write(data)
		return err
	}))
	return hex.EncodeToString(sum.Sum(nil))
}

// checkLooks: no GET changes anything that is kept, but for the audit of who takes words or sound away.
func checkLooks(t *testing.T, c *town) {
	routes := c.allRoutes()
	h, before, looked := c.guarded(routes), c.kept(), 0
	for _, route := range routes {
		method, paths := c.paths(route.Pattern)
		if method != http.MethodGet || route.Use == access.Export || strings.Contains(route.Pattern, "/media/") {
			continue
		}
		c.stream = route.Use == access.Stream
		for _, path := range paths {
			looked++
			c.ask(h, "olga", method, path)
		}
		if after := c.kept(); after != before {
			t.Errorf("%s changes what is kept", route.Pattern)
			before = after
		}
	}
	if looked < 50 {
		t.Errorf("only %d looks", looked)
	}
	c.accounts.Did(t.Context(), account.Actor{Name: "test", Via: account.ViaCommand}, "test", "", nil)
	if c.kept() == before {
		t.Error("the test would not see a change")
	}
}
