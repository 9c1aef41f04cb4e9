package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/lockout"
)

// TestRoutesDeclareThemselves walks all that the server serves with a session and a token of each role: each answer but
// those to devices has the headers of security; on paths of devices these change nothing of the answer, nor does a session
// where only tokens count; paths of people are closed without them.
func TestRoutesDeclareThemselves(t *testing.T) {
	cfg := config.Default()
	cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, nil
	a, err := Build(t.Context(), cfg, Options{PasswordCost: cheap, Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	h, err := a.routes()
	if err != nil {
		t.Fatal(err)
	}
	callers := map[string]func(*http.Request){"nobody": func(*http.Request) {}}
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	for _, role := range account.Roles() {
		name, password := "the-"+string(role), "correct horse battery"
		if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: role, Password: password}); err != nil {
			t.Fatal(err)
		}
		secret, err := a.accounts.Login(t.Context(), name, account.Proof{Password: password}, account.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		token, err := a.accounts.NewToken(t.Context(), by, name, account.NewToken{Label: "x", Scopes: []account.Scope{account.Admin}})
		if err != nil {
			t.Fatal(err)
		}
		callers["session of "+string(role)] = func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "xiaozhi", Value: secret}) }
		callers["token of "+string(role)] = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	a.web.guard.SetAdmin("0123456789abcdef")
	callers["admin token"] = func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		r.Header.Set("Content-Type", "application/json")
		r.Body = io.NopCloser(strings.NewReader(`{"name":"x","role":"owner","password":"correct horse battery","rev":1}`))
	}
	asked := 0
	ask := func(route access.Route, how func(*http.Request)) int {
		method, path, ok := strings.Cut(route.Pattern, " ")
		if !ok {
			method, path = http.MethodGet, method
		}
		r := httptest.NewRequest(method, strings.TrimSuffix(path, "{$}"), nil)
		asked++
		if route.Use == access.Stream {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			r = r.WithContext(ctx)
		}
		r.Host = "127.0.0.1:8000"
		r.RemoteAddr = fmt.Sprintf("192.168.7.%d:1", asked%250) // wrong tokens of one address are not looked at for long
		how(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		for _, name := range []string{
			"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Permissions-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Cache-Control",
		} {
			if route.For != access.Devices && w.Header().Get(name) == "" {
				t.Errorf("%s: %d without %s", route.Pattern, w.Code, name)
			}
		}
		return w.Code
	}
	for _, route := range a.allRoutes() {
		nobody, away := ask(route, callers["nobody"]), http.StatusUnauthorized
		if route.Refused != nil {
			away = http.StatusSeeOther // a page leads to the door
		}
		if route.For == access.People && nobody != away || route.For == access.Bearers && nobody < 400 && !strings.HasSuffix(route.Pattern, "health") {
			t.Errorf("%s answers nobody with %d", route.Pattern, nobody)
		}
		for name, how := range callers {
			if strings.HasPrefix(name, "token") && route.For == access.Bearers {
				continue
			}
			got := ask(route, how)
			if name == "admin token" && route.For == access.People && got >= 500 {
				t.Errorf("%s answers the %s with %d", route.Pattern, name, got)
			}
			if route.For != access.People && name != "admin token" && got != nobody {
				t.Errorf("%s answers %s with %d, nobody with %d", route.Pattern, name, got, nobody)
			}
		}
	}
}

// TestRoutesInOnePlace: nothing is served past what declares itself.
func TestRoutesInOnePlace(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	past := regexp.MustCompile(`\.Handle(Func)?\(|NewServeMux`)
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "_test.go") || !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		source, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if f.Name() == "server.go" { // the profiles have a listener of their own, on loopback
			source, _, _ = bytes.Cut(source, []byte("func serveProfiles"))
		}
		if past.Match(source) {
			t.Errorf("%s registers paths of its own", f.Name())
		}
	}
}

// TestGuessesBehindProxy: who guesses tokens through a trusted proxy is locked out alone; one that is not trusted counts
// as one.
func TestGuessesBehindProxy(t *testing.T) {
	for _, trust := range []bool{true, false} {
		cfg := config.Default()
		cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, nil
		cfg.Server.TrustProxy = trust
		cfg.Tools.Endpoint = config.Endpoint{Enabled: true, Tokens: []config.EndpointToken{{Name: "a", Token: "0123456789abcdef"}}}
		a, err := Build(t.Context(), cfg, Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		h, err := a.routes()
		if err != nil {
			t.Fatal(err)
		}
		ask := func(path, from string) int {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host, r.RemoteAddr = "127.0.0.1:8000", "127.0.0.1:5"
			r.Header.Set("X-Forwarded-For", from)
			r.Header.Set("Authorization", "Bearer a-wrong-guess")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		for i, path := range []string{"/mcp/endpoint", "/api/mcp/tools", "/api/devices"} {
			guesser, other := fmt.Sprintf("192.168.8.%d", i), fmt.Sprintf("192.168.9.%d", i)
			for range lockout.MaxGuesses {
				ask(path, guesser)
			}
			want := map[bool]int{true: http.StatusUnauthorized, false: http.StatusTooManyRequests}[trust]
			if guessed, asked := ask(path, guesser), ask(path, other); guessed != http.StatusTooManyRequests || asked != want {
				t.Errorf("trusted %v, %s: %d for who guesses, %d for another, want %d", trust, path, guessed, asked, want)
			}
		}
	}
}
