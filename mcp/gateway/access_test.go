package gateway

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
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
			r.Header.Set("Content-Type", "application/json")
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

// A page of another site gets nothing, though the browser may show no origin, and a body
// that is not said to be JSON is not read.
func TestAccessOfPages(t *testing.T) {
	g := newOwned(Options{Access: Access{Origins: []string{"https://inspector.example.org"}}})
	defer g.Close()
	box := router.New(router.Options{}, lamp{})
	defer box.Close()
	devices := g.DeviceAPI(house{box})
	for _, c := range []struct {
		method, path, body string
		header             []string // names and values
		want               int
	}{
		{"GET", "/api/mcp/tools", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/api/mcp/tools", "", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"GET", "/api/mcp/tools", "", []string{"Sec-Fetch-Site", "none"}, 200},
		{"GET", "/mcp/ws", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/api/mcp/connect", "", []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://localhost:3000"}, 403},
		{"GET", "/api/mcp/tools", "", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://inspector.example.org"}, 200},
		{"GET", "/api/devices", "", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/api/devices", "", nil, 200},
		{"POST", "/api/mcp/jsonrpc", "{}", []string{"Content-Type", "text/plain"}, 415},
		{"POST", "/api/mcp/jsonrpc", "{}", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"POST", "/api/mcp/jsonrpc", "{}", []string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
		{"POST", "/api/mcp/jsonrpc", "{}", []string{"Content-Type", "text/plain; application/json"}, 415},
		{"POST", "/api/mcp/jsonrpc", "{}", nil, 415},
		{"POST", "/api/mcp/jsonrpc", "{}", []string{"Content-Type", "application/json; charset=utf-8"}, 200},
		{"POST", "/api/mcp/tools/call", "{}", []string{"Content-Type", "text/plain"}, 415},
		{"POST", "/api/devices/x/tools/call", "{}", []string{"Content-Type", "text/plain"}, 415},
		{"POST", "/api/devices/x/tools/call", "{}", []string{"Content-Type", "application/json"}, 404},
	} {
		r := httptest.NewRequest(c.method, "http://localhost"+c.path, strings.NewReader(c.body))
		r.Header.Set("Authorization", "Bearer "+ownerToken)
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		w := httptest.NewRecorder()
		if strings.HasPrefix(c.path, "/api/devices") {
			devices.ServeHTTP(w, r)
		} else {
			g.ServeHTTP(w, r)
		}
		if w.Code != c.want {
			t.Errorf("%s %s %q: %d, want %d: %s", c.method, c.path, c.header, w.Code, c.want, w.Body)
		}
	}
}
