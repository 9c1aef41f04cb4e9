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

// TestAccess: only bearers of a token are let in, wherever they are, and no token is
// in the log.
func TestAccess(t *testing.T) {
	tokens := []catalog.Token{{Name: "laptop", Token: "s3cret"}, {Name: "screen", Token: "look", ReadOnly: true}}
	type headers = map[string]string
	bearer := func(token string) headers { return headers{"Authorization": "Bearer " + token} }
	for _, c := range []struct {
		name   string
		tokens []catalog.Token
		remote string
		host   string
		method string
		header headers
		want   int
	}{
		{"this machine", nil, "127.0.0.1:5000", "127.0.0.1:8000", "GET", nil, 401},
		{"this machine by name", nil, "[::1]:5000", "localhost:8000", "POST", nil, 401},
		{"what a proxy, a tunnel or a container makes of the world", nil, "127.0.0.1:5000", "localhost:8000", "POST", nil, 401},
		{"own page", nil, "127.0.0.1:5000", "localhost:8000", "GET", headers{"Origin": "http://localhost:8000"}, 401},
		{"another machine", nil, "192.168.1.7:5000", "192.168.1.2:8000", "GET", nil, 401},
		{"a name that leads here", nil, "127.0.0.1:5000", "evil.example:8000", "GET", nil, 401},
		{"a page of somebody else", nil, "127.0.0.1:5000", "127.0.0.1:8000", "POST", headers{"Origin": "http://evil.example"}, 403},
		{"a page without an origin", nil, "127.0.0.1:5000", "127.0.0.1:8000", "POST", headers{"Origin": "null"}, 403},
		{"an odd address", nil, "pipe", "127.0.0.1:8000", "GET", nil, 401},
		{"owner", nil, "127.0.0.1:5000", "127.0.0.1:8000", "GET", bearer(ownerToken), 200},
		{"owner elsewhere", nil, "192.168.1.7:5000", "192.168.1.2:8000", "POST", bearer(ownerToken), 200},
		{"owner beside tokens", tokens, "127.0.0.1:5000", "127.0.0.1:8000", "POST", bearer(ownerToken), 200},
		{"almost the owner", nil, "127.0.0.1:5000", "127.0.0.1:8000", "GET", bearer(ownerToken[1:]), 401},
		{"owner on a page of somebody else", nil, "127.0.0.1:5000", "127.0.0.1:8000", "POST", headers{"Authorization": "Bearer " + ownerToken, "Origin": "http://evil.example"}, 403},
		{"no token", tokens, "127.0.0.1:5000", "127.0.0.1:8000", "GET", nil, 401},
		{"wrong token", tokens, "127.0.0.1:5000", "127.0.0.1:8000", "GET", bearer("s3cre"), 401},
		{"another scheme", tokens, "127.0.0.1:5000", "127.0.0.1:8000", "GET", headers{"Authorization": "Basic s3cret"}, 401},
		{"right token", tokens, "192.168.1.7:5000", "nas.lan:8000", "POST", bearer("s3cret"), 200},
		{"right token, other spelling", tokens, "192.168.1.7:5000", "nas.lan:8000", "POST", headers{"Authorization": "bearer  s3cret "}, 200},
		{"may look", tokens, "192.168.1.7:5000", "nas.lan:8000", "GET", bearer("look"), 200},
		{"may not call", tokens, "192.168.1.7:5000", "nas.lan:8000", "POST", bearer("look"), 403},
		{"an empty token is none", []catalog.Token{{Name: "x"}}, "127.0.0.1:5000", "127.0.0.1:8000", "GET", bearer(""), 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			g := newGuard(Access{Tokens: c.tokens}, slog.New(slog.NewTextHandler(&log, nil)))
			g.owner = ownerToken
			h := g.before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), new(deviceAPI).fail)
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
			if c.want == 401 && !strings.Contains(w.Body.String(), "mcp.tokens") {
				t.Errorf("the key is not named: %s", w.Body)
			}
			if refused := strings.Contains(log.String(), "request refused"); refused != (c.want != 200) {
				t.Errorf("log: %s", &log)
			}
			for _, secret := range []string{"s3cre", ownerToken[1:]} {
				if strings.Contains(log.String()+w.Body.String(), secret) {
					t.Errorf("a token shows: %s %s", &log, w.Body)
				}
			}
		})
	}
}

// Without an owner's token there is no owner: an empty one opens nothing.
func TestAccessNobody(t *testing.T) {
	g := New(Options{})
	defer g.Close()
	for _, shown := range []string{"", "Bearer", "Bearer ", "Bearer  "} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/api/mcp/tools?token=", nil)
		r.RemoteAddr = "127.0.0.1:1"
		if shown != "" {
			r.Header.Set("Authorization", shown)
		}
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", shown, w.Code)
		}
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
