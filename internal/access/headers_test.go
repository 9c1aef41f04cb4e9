package access

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/account"
)

// TestHeaders: each answer says what browsers may do with it, also one of nobody's and of what fails; a page may use what
// is of this server.
func TestHeadersOnEveryAnswer(t *testing.T) {
	r := newRig(t)
	r.guard.o.PublicName = "example.com"
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") })
	page := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { PageHeaders(w, q) })
	mux := r.mux(append(r.guard.Routes(), Route{Pattern: "/panics", For: Anyone, Handler: panics}, Route{Pattern: "GET /console/page", For: Anyone, Handler: page})...)
	for path, want := range map[string]string{
		"GET /api/v1/me": nothingShown, "GET /nothing": nothingShown, "GET /api/v1/login": nothingShown, "POST /api/v1/login": nothingShown, "GET /panics": nothingShown,
		"GET /console/page": pagePolicy + " ws://example.com wss://example.com" + pageLimits,
	} {
		for _, tls := range []bool{false, true} {
			how := []request{}
			if tls {
				how = append(how, overTLS)
			}
			h := ask(mux, path, "x", how...).Header()
			for name, want := range map[string]string{
				"Content-Security-Policy": want, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				"Strict-Transport-Security": map[bool]string{true: "max-age=15552000"}[tls],
			} {
				if got := h.Get(name); got != want {
					t.Errorf("%s: %s is %q, want %q", path, name, got, want)
				}
			}
			if !strings.Contains(h.Get("Permissions-Policy"), "microphone=(self)") {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
	if h := ask(mux, "GET /console/page", "", overTLS, host("192.168.1.2")).Header(); h.Get("Strict-Transport-Security") != "" {
		t.Error("an address is asked for by https alone")
	}
	for name, want := range map[string]bool{"[fd00::1]:8000": true, "a.example:1": true, "x; script-src *": false, "a b": false, "x'y": false, "": false} {
		if got := plainHost(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func host(name string) request { return func(r *http.Request) { r.Host = name } }

// TestRebinding: what people's browsers ask is not answered by another name than this server's.
func TestRebindingByAudience(t *testing.T) {
	r := newRig(t).people()
	h := http.NotFoundHandler()
	mux := r.mux(append(r.guard.Routes(),
		Route{Pattern: "GET /console/login", For: Anyone, Handler: h}, Route{Pattern: "GET /healthz", For: Anyone, Handler: h},
		Route{Pattern: "GET /console/x", For: People, Need: account.Need{Role: account.Viewer, Scope: account.Read}, Handler: h},
	)...)
	for path, want := range map[string]int{
		"POST /api/v1/login": 421, "GET /api/v1/me": 421, "GET /console/login": 421, "GET /console/x": 421, "GET /healthz": 404,
	} {
		if w := ask(mux, path, "{}", cookie(r.cookies["owner"]), host("evil.example")); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

// TestPagesAtTheirAddress: what people ask is answered at the addresses that are set for it, and is not there at others.
func TestPagesAtTheirAddress(t *testing.T) {
	r := newRig(t).people()
	r.guard.o.At = []string{"127.0.0.1:8000", "localhost:9000", ":7000"}
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux := r.mux(append(r.guard.Routes(),
		Route{Pattern: "GET /console/login", For: Anyone, Handler: h}, Route{Pattern: "GET /{$}", For: Anyone, Handler: h}, Route{Pattern: "GET /healthz", For: Anyone, Handler: h},
		Route{Pattern: "GET /console/x", For: People, Need: account.Need{Role: account.Viewer, Scope: account.Read}, Handler: h},
	)...)
	for _, c := range []struct {
		at   string
		want int
	}{
		{"127.0.0.1:8000", 200}, {"[::ffff:127.0.0.1]:8000", 200}, {"192.168.1.2:8000", 404}, {"127.0.0.1:8003", 404},
		{"[::1]:9000", 200}, {"192.168.1.2:9000", 404}, {"192.168.1.2:7000", 200}, {"", 404},
	} {
		arrives := func(q *http.Request) {
			if local, err := net.ResolveTCPAddr("tcp", c.at); err == nil && c.at != "" {
				*q = *q.WithContext(context.WithValue(q.Context(), http.LocalAddrContextKey, net.Addr(local)))
			}
		}
		for _, path := range []string{"GET /console/login", "GET /console/x", "GET /", "GET /api/v1/me"} {
			if w := ask(mux, path, "", cookie(r.cookies["owner"]), arrives); w.Code != c.want {
				t.Errorf("%s at %s: %d, want %d", path, c.at, w.Code, c.want)
			}
		}
		if w := ask(mux, "GET /healthz", "", arrives); w.Code != 200 {
			t.Errorf("health at %s: %d", c.at, w.Code)
		}
	}
}

// TestLongBodies: a route takes a MiB, unless it says otherwise.
func TestLongBodies(t *testing.T) {
	r := newRig(t)
	read := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if _, err := q.Body.Read(make([]byte, 0)); err != nil {
			t.Error(err)
		}
		n := 0
		for b := make([]byte, 64<<10); ; {
			m, err := q.Body.Read(b)
			if n += m; err != nil {
				break
			}
		}
		w.Header().Set("X-Read", map[bool]string{true: "all"}[int64(n) == q.ContentLength])
	})
	mux := r.mux(Route{Pattern: "POST /a", For: Anyone, Handler: read}, Route{Pattern: "POST /b", For: Anyone, Handler: read, MaxBody: 2 << 20})
	long := strings.Repeat("x", maxRequest+1)
	for path, want := range map[string]string{"POST /a": "", "POST /b": "all"} {
		if got := ask(mux, path, long).Header().Get("X-Read"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
