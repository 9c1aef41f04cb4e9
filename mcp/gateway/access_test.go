package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xiaozhi/mcp/gateway/catalog"
)

// TestAccess: with no token only this machine is let in, with one only its
// bearers, and no token is in the log.
func TestAccess(t *testing.T) {
	tokens := []catalog.Token{{Name: "laptop", Token: "s3cret"}, {Name: "screen", Token: "look", ReadOnly: true}}
	for _, c := range []struct {
		name   string
		tokens []catalog.Token
		remote string
		host   string
		method string
		header map[string]string
		want   int
	}{
		{"this machine", nil, "127.0.0.1:5000", "127.0.0.1:8000", "GET", nil, 200},
		{"this machine by name", nil, "[::1]:5000", "localhost:8000", "POST", nil, 200},
		{"IPv6", nil, "[::1]:5000", "[::1]:8000", "GET", nil, 200},
		{"IPv4 in IPv6", nil, "[::ffff:127.0.0.1]:5000", "127.0.0.1", "GET", nil, 200},
		{"own page", nil, "127.0.0.1:5000", "localhost:8000", "GET", map[string]string{"Origin": "http://localhost:8000"}, 200},
		{"another machine", nil, "192.168.1.7:5000", "127.0.0.1:8000", "GET", nil, 403},
		{"a name that leads here", nil, "127.0.0.1:5000", "evil.example:8000", "GET", nil, 403},
		{"a page of somebody else", nil, "127.0.0.1:5000", "127.0.0.1:8000", "POST", map[string]string{"Origin": "http://evil.example"}, 403},
		{"a page without an origin", nil, "127.0.0.1:5000", "127.0.0.1:8000", "POST", map[string]string{"Origin": "null"}, 403},
		{"through a proxy", nil, "127.0.0.1:5000", "127.0.0.1:8000", "GET", map[string]string{"X-Forwarded-For": "1.2.3.4"}, 403},
		{"an odd address", nil, "pipe", "127.0.0.1:8000", "GET", nil, 403},
		{"no token", tokens, "127.0.0.1:5000", "127.0.0.1:8000", "GET", nil, 401},
		{"wrong token", tokens, "127.0.0.1:5000", "127.0.0.1:8000", "GET", map[string]string{"Authorization": "Bearer s3cre"}, 401},
		{"another scheme", tokens, "127.0.0.1:5000", "127.0.0.1:8000", "GET", map[string]string{"Authorization": "Basic s3cret"}, 401},
		{"right token", tokens, "192.168.1.7:5000", "nas.lan:8000", "POST", map[string]string{"Authorization": "Bearer s3cret"}, 200},
		{"right token, other spelling", tokens, "192.168.1.7:5000", "nas.lan:8000", "POST", map[string]string{"Authorization": "bearer  s3cret "}, 200},
		{"may look", tokens, "192.168.1.7:5000", "nas.lan:8000", "GET", map[string]string{"Authorization": "Bearer look"}, 200},
		{"may not call", tokens, "192.168.1.7:5000", "nas.lan:8000", "POST", map[string]string{"Authorization": "Bearer look"}, 403},
		{"an empty token is none", []catalog.Token{{Name: "x"}}, "127.0.0.1:5000", "127.0.0.1:8000", "GET", map[string]string{"Authorization": "Bearer "}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			h := newGuard(Access{Tokens: c.tokens}, slog.New(slog.NewTextHandler(&log, nil))).before(
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), new(deviceAPI).fail)
			r := httptest.NewRequest(c.method, "/api/devices", nil)
			r.RemoteAddr, r.Host = c.remote, c.host
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %s", w.Code, c.want, w.Body)
			}
			if (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("WWW-Authenticate %q with %d", w.Header().Get("WWW-Authenticate"), w.Code)
			}
			if c.want == 403 && c.tokens == nil && !strings.Contains(w.Body.String(), "mcp.tokens") {
				t.Errorf("the key is not named: %s", w.Body)
			}
			if refused := strings.Contains(log.String(), "request refused"); refused != (c.want != 200) {
				t.Errorf("log: %s", &log)
			}
			if strings.Contains(log.String()+w.Body.String(), "s3cre") {
				t.Errorf("a token shows: %s %s", &log, w.Body)
			}
		})
	}
}

// TestRatesBounds checks that many addresses neither fill the memory nor make an
// address that has just guessed a new one.
func TestRatesBounds(t *testing.T) {
	r := newRates()
	for i := range 3 * maxGuessers {
		r.guessed(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
		r.listens(fmt.Sprintf("11.%d.%d.%d:1", i>>16, i>>8&255, i&255), "a")
		if i%(maxGuessers/2) == 0 {
			for range maxGuesses {
				r.guessed("192.0.2.1:1")
			}
		}
	}
	if r.guesses.Len() > maxGuessers || r.known.Len() > maxGuessers {
		t.Errorf("%d addresses, %d visitors", r.guesses.Len(), r.known.Len())
	}
	if r.listens("192.0.2.1:2", "a") || !r.listens("192.0.2.2:1", "a") {
		t.Error("an address that guesses is listened to, or another is not")
	}
}
