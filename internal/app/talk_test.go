package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
)

const goodPassword = "correct horse battery"

// talkRig is a server with people, to whose pages it gives tickets.
type talkRig struct {
	t      *testing.T
	app    *App
	server *httptest.Server
	ids    map[string]string // the person's cookies, by name
}

func newTalkRig(t *testing.T) *talkRig {
	t.Helper()
	cfg := config.Default()
	cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, nil
	a, err := Build(t.Context(), cfg, Options{PasswordCost: cheap, Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	h, err := a.routes()
	if err != nil {
		t.Fatal(err)
	}
	r := &talkRig{t, a, httptest.NewServer(h), map[string]string{}}
	t.Cleanup(r.server.Close)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { a.web.desk.Run(ctx) })
	t.Cleanup(func() { a.devices.Close(); cancel(); wg.Wait() })
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	for name, role := range map[string]account.Role{"olga": account.Owner, "max": account.Member, "vic": account.Viewer} {
		if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: role, Password: goodPassword}); err != nil {
			t.Fatal(err)
		}
		r.login(name)
	}
	return r
}

func (r *talkRig) login(name string) {
	r.t.Helper()
	secret, err := r.app.accounts.Login(r.t.Context(), name, account.Proof{Password: goodPassword}, account.Origin{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.ids[name] = secret
}

// ticket asks for one as the page of somebody.
func (r *talkRig) ticket(name, body string, change func(*http.Request)) (ticket, device string, status int) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.server.URL+"/console/talk/ticket", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Origin", r.server.URL)
	q.AddCookie(&http.Cookie{Name: "xiaozhi", Value: r.ids[name]})
	if change != nil {
		change(q)
	}
	a, err := r.server.Client().Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Body.Close()
	var got struct{ Ticket, Device string }
	_ = json.NewDecoder(a.Body).Decode(&got) // of a refusal nothing is read
	return got.Ticket, got.Device, a.StatusCode
}

// socket opens one with a ticket, as the page of somebody at an origin.
func (r *talkRig) socket(ticket, name, origin string) (*devicetest.Device, error) {
	header := http.Header{"Origin": {origin}}
	if name != "" {
		header.Set("Cookie", "xiaozhi="+r.ids[name])
	}
	return devicetest.Dial(r.t.Context(), devicetest.Options{
		URL: "ws" + strings.TrimPrefix(r.server.URL, "http") + "/xiaozhi/v1/?ticket=" + ticket, Profile: devicetest.Browser,
		Page: header, Sound: devicetest.Sound{PCM: true},
	})
}

const page = `{"browser":"0123456789abcdef"}`

// A page talks by a ticket that its own session was given, once, and as long as that session lasts.
func TestTalkTicket(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	own := r.server.URL
	for name, tc := range map[string]struct {
		who, body string
		change    func(*http.Request)
		want      int
	}{
		"nobody":          {"nobody", page, nil, 401},
		"a viewer":        {"vic", page, nil, 403},
		"no origin":       {"max", page, func(q *http.Request) { q.Header.Del("Origin") }, 403},
		"foreign origin":  {"max", page, func(q *http.Request) { q.Header.Set("Origin", "http://evil.example") }, 403},
		"foreign name":    {"max", page, func(q *http.Request) { q.Host = "evil.example" }, 421},
		"no browser":      {"max", `{}`, nil, 400},
		"a browser's id":  {"max", `{"browser":"../../../../etc/passwd"}`, nil, 400},
		"another type":    {"max", `{"browser":7}`, nil, 400},
		"no JSON":         {"max", page, func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") }, 415},
		"ten thousand":    {"max", `{"browser":"` + strings.Repeat("a", 10_000) + `"}`, nil, 400},
		"a member's page": {"max", page, nil, 200},
	} {
		if _, _, status := r.ticket(tc.who, tc.body, tc.change); status != tc.want {
			t.Errorf("%s: %d, want %d", name, status, tc.want)
		}
	}

	refused := func(what, ticket, name, origin string) {
		t.Helper()
		if d, err := r.socket(ticket, name, origin); err == nil {
			d.Close()
			t.Errorf("%s opens a socket", what)
		}
	}
	good := func() string { ticket, _, _ := r.ticket("max", page, nil); return ticket }
	refused("no ticket", "", "max", own)
	refused("a made-up ticket", "AAAA", "max", own)
	refused("a foreign origin", good(), "max", "http://evil.example")
	refused("another origin of this machine", good(), "max", "http://127.0.0.1:1")
	refused("somebody else's session", good(), "olga", own)
	refused("no session", good(), "", own)

	for _, lang := range []string{"en", "zh"} {
		_, device, _ := r.ticket("max", page, func(q *http.Request) { q.Header.Set("Accept-Language", lang) })
		if got := r.app.devices.Language(device); got != lang {
			t.Errorf("a page in %s is talked to in %s", lang, got)
		}
	}
	ticket, device, _ := r.ticket("max", page, nil)
	d, err := r.socket(ticket, "max", own)
	if err != nil {
		t.Fatal(err)
	}
	refused("a used ticket", ticket, "max", own)
	if _, other, _ := r.ticket("olga", page, nil); other == device {
		t.Error("two people have one browser")
	}
	kept, err := r.app.stored.Devices.Get(t.Context(), device)
	if ids, _ := r.app.stored.Devices.OwnedBy(t.Context(), kept.OwnerID); err != nil || kept.State != "browser" || len(ids) != 1 || ids[0] != device {
		t.Errorf("the browser is kept as %q of %v (%v)", kept.State, ids, err)
	}
	before := time.Now()
	if err := r.app.accounts.EndSessions(t.Context(), account.Actor{Name: "olga", Via: account.ViaCommand}, "max"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.Done():
		if took := time.Since(before); took > 2*time.Second {
			t.Errorf("the socket was open for %v after the session", took)
		}
	case <-time.After(5 * time.Second):
		t.Error("the socket outlives the session")
		d.Close()
	}
	for _, v := range d.Violations() {
		t.Errorf("violation: %v", v)
	}
}
