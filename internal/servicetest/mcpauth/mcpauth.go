// Package mcpauth is an authorization server and the protection of an MCP server by it, on real sockets, after OAuth 2.1
// (authorization code with PKCE), RFC 8414 (metadata), RFC 9728 (protected resources), RFC 7591 (registration) and RFC 9207
// (iss). Its faults are set while it runs.
package mcpauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is an authorization server with one protected MCP server. Its methods may be called at the same time.
type Server struct {
	http *httptest.Server
	over chan struct{} // closed by Close

	mu       sync.Mutex
	faults   Faults
	clients  map[string]client
	codes    map[string]code
	access   map[string]time.Time // tokens to their ends
	refresh  map[string]string    // tokens to client ids
	requests []string             // what was asked for, in order
}

// Faults change what the server does. The zero value has none.
type Faults struct {
	Lifetime     time.Duration     // of access tokens; 0: an hour
	NoRefresh    bool              // no refresh tokens are given
	Deny         string            // the person refuses: the error of the browser step
	TokenError   string            // the error of all token requests
	Scope        string            // that the protected server wants; "": none
	NoClients    bool              // nobody can register
	ForgetAccess bool              // every access token is refused
	Hang         map[string]bool   // paths that are not answered until the request ends
	Answer       map[string]string // bodies of paths, whatever they should be
	Status       map[string]int    // statuses of paths
}

type client struct{ redirects []string }

type code struct {
	client, redirect, challenge, resource string
}

// New starts a server, which protects an MCP server at /mcp.
func New(mcp http.Handler) *Server {
	s := &Server{over: make(chan struct{}), clients: map[string]client{}, codes: map[string]code{}, access: map[string]time.Time{}, refresh: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", s.resource)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.Handle("/mcp", s.protect(mcp))
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		hang, answer, status := s.faults.Hang[r.URL.Path], s.faults.Answer[r.URL.Path], s.faults.Status[r.URL.Path]
		s.mu.Unlock()
		switch {
		case hang:
			_, _ = io.Copy(io.Discard, r.Body) // until then nobody sees that the other side has gone
			select {
			case <-r.Context().Done():
			case <-s.over:
			}
		case status != 0:
			w.WriteHeader(status)
			_, _ = w.Write([]byte(answer))
		case answer != "":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	return s
}

// Close ends the server.
func (s *Server) Close() {
	close(s.over)
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL is the address of the MCP server.
func (s *Server) URL() string { return s.http.URL + "/mcp" }

// Set sets what goes wrong from now on.
func (s *Server) Set(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Asked counts requests of a method and path, such as "POST /register".
func (s *Server) Asked(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r == what {
			n++
		}
	}
	return n
}

// Revoke takes all tokens back.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	clear(s.refresh)
}

// Register makes a client by hand.
func (s *Server) Register(id, redirect string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[id] = client{[]string{redirect}}
}

// Browse follows a link as a browser of a person who agrees does, and returns the address to which it is led back.
func Browse(link string) (back *url.URL, err error) {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get(link) //nolint:noctx // a test
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	return resp.Location()
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}

func (s *Server) resource(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"resource": s.URL(), "authorization_servers": []string{s.http.URL}, "bearer_methods_supported": []string{"header"}})
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": s.http.URL, "authorization_endpoint": s.http.URL + "/authorize", "token_endpoint": s.http.URL + "/token",
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		"authorization_response_iss_parameter_supported": true,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.faults.NoClients {
		m["registration_endpoint"] = s.http.URL + "/register"
	}
	answer(w, http.StatusOK, m)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Redirects []string `json:"redirect_uris"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || len(m.Redirects) == 0 {
		refuse(w, http.StatusBadRequest, "invalid_redirect_uri")
		return
	}
	id := "client-" + rand.Text()
	s.mu.Lock()
	s.clients[id] = client{m.Redirects}
	s.mu.Unlock()
	answer(w, http.StatusCreated, map[string]any{
		"client_id": id, "redirect_uris": m.Redirects, "token_endpoint_auth_method": "none", "grant_types": []string{"authorization_code", "refresh_token"},
	})
}

// authorize is the page at which a person agrees, and does at once.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.clients[q.Get("client_id")]
	switch {
	case !known || !slices.Contains(c.redirects, q.Get("redirect_uri")):
		refuse(w, http.StatusBadRequest, "invalid_request") // nobody is led anywhere
		return
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("state") == "":
		refuse(w, http.StatusBadRequest, "invalid_request")
		return
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {s.http.URL}}
	if s.faults.Deny != "" {
		back.Set("error", s.faults.Deny)
	} else {
		made := rand.Text()
		s.codes[made] = code{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("resource")}
		back.Set("code", made)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.TokenError != "" {
		refuse(w, http.StatusBadRequest, s.faults.TokenError)
		return
	}
	id := r.Form.Get("client_id")
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		c, ok := s.codes[r.Form.Get("code")]
		delete(s.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !ok || c.client != id || c.redirect != r.Form.Get("redirect_uri") || base64.RawURLEncoding.EncodeToString(sum[:]) != c.challenge || c.resource != s.URL() {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
	case "refresh_token":
		owner, ok := s.refresh[r.Form.Get("refresh_token")]
		if !ok || owner != id {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
		delete(s.refresh, r.Form.Get("refresh_token")) // each is good once
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	life := s.faults.Lifetime
	if life == 0 {
		life = time.Hour
	}
	out := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(life.Seconds())}
	s.access[out["access_token"].(string)] = time.Now().Add(life)
	if !s.faults.NoRefresh {
		out["refresh_token"] = rand.Text()
		s.refresh[out["refresh_token"].(string)] = id
	}
	if s.faults.Scope != "" {
		out["scope"] = s.faults.Scope
	}
	answer(w, http.StatusOK, out)
}

// protect lets requests with a token in.
func (s *Server) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		end, known := s.access[shown]
		known = known && time.Now().Before(end) && !s.faults.ForgetAccess
		scope := s.faults.Scope
		s.mu.Unlock()
		if !ok || !known {
			challenge := `Bearer resource_metadata="` + s.http.URL + `/.well-known/oauth-protected-resource/mcp"`
			if scope != "" {
				challenge += `, scope="` + scope + `"`
			}
			w.Header().Set("WWW-Authenticate", challenge)
			refuse(w, http.StatusUnauthorized, "invalid_token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Toolbox is an MCP server (2025-11-25, without sessions) with one tool, open.
func Toolbox() http.Handler {
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"toolbox","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"open","inputSchema":{"type":"object"}}]}`,
		"ping":       `{}`,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		switch err := json.NewDecoder(r.Body).Decode(&m); {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case results[m.Method] == "":
			answer(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": "no such method"}})
		default:
			answer(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(results[m.Method])})
		}
	})
}
