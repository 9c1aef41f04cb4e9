package external

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/lockout"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

const (
	maxPeers     = 16      // that have dialled in at the same time
	maxPeerFrame = 1 << 20 // bytes of one message of theirs
)

// Token lets tool servers dial in.
type Token struct {
	Name   string // what they are called in lists and logs; "" means endpoint
	Secret string // never empty
	Device string // Device-Id that their tools are for alone; "": for all
	Allow  []string
	Deny   []string
	Kinds  map[string]mcp.Kind
	Trust  bool // as in Config
}

// LogValue leaves the secret out.
func (t Token) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", t.Name), slog.String("device", t.Device))
}

// peer is a tool server that dialled in.
type peer struct {
	*Server
	device string
}

// endpoint accepts tool servers that dial in by WebSocket: we are the MCP client on
// a socket that they opened. It is an http.Handler.
type endpoint struct {
	set      *Set
	tokens   []Token
	upgrader websocket.Upgrader
	refused  logLimiter
	guesses  *lockout.Guesses
}

// Endpoint is the handler of /mcp/endpoint. Who shows one of tokens, as ?token=
// or as a bearer, is asked for its tools, which belong to the set until its
// socket ends. Without tokens every server is refused.
func (set *Set) Endpoint(tokens []Token) http.Handler {
	return &endpoint{
		set: set, tokens: tokens, guesses: lockout.New(),
		upgrader: websocket.Upgrader{HandshakeTimeout: dialLimit, Subprotocols: []string{"mcp"}},
	}
}

// ServeHTTP lets a tool server in and returns when it has left.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := e.admit(w, r)
	if !ok {
		return
	}
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, message.Both("external/websocket-only"), http.StatusUpgradeRequired)
		return
	}
	p, release, err := e.set.enrol(token)
	if err != nil {
		e.refuse(r, err.Error())
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer release()
	conn, err := e.upgrader.Upgrade(w, r, nil) // it answers by itself when it fails
	if err != nil {
		e.refuse(r, "upgrade failed: "+err.Error())
		return
	}
	l := newLink(newSocket(conn, maxPeerFrame), pingEvery, p.log)
	p.dialling.open = func(context.Context, way) (*line, error) { return socketLine(l), nil }
	p.log.Info("mcp tool server dialled in", "remote", r.RemoteAddr, "device_id", p.device)
	if err := p.Start(r.Context()); err != nil { // the set is stopping
		_ = conn.Close()
		return
	}
	p.life.wg.Wait()
}

// admit looks at the method and the token, which takes the same time for every
// token that is shown.
func (e *endpoint) admit(w http.ResponseWriter, r *http.Request) (token Token, ok bool) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, message.Both("external/get-only"), http.StatusMethodNotAllowed)
		return Token{}, false
	}
	shown := r.URL.Query().Get("token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && shown == "" {
		shown = bearer
	}
	sum := sha256.Sum256([]byte(shown))
	for _, t := range e.tokens {
		own := sha256.Sum256([]byte(t.Secret))
		if subtle.ConstantTimeCompare(sum[:], own[:]) == 1 && t.Secret != "" {
			token, ok = t, true
		}
	}
	if !e.guesses.Listens(r.RemoteAddr, token.Secret) {
		e.refuse(r, "too many wrong tokens")
		w.Header().Set("Retry-After", "60")
		http.Error(w, message.Both("external/locked"), http.StatusTooManyRequests)
		return Token{}, false
	}
	if !ok {
		if shown != "" {
			e.guesses.Wrong(r.RemoteAddr)
		}
		why, id := "unknown token", "external/token-unknown"
		if shown == "" {
			why, id = "no token", "external/token-none"
		}
		e.refuse(r, why)
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, message.Both(id), http.StatusUnauthorized)
	}
	return token, ok
}

// refuse logs a tool server that was not let in, though not each of many.
func (e *endpoint) refuse(r *http.Request, why string) {
	if pass, held := e.refused.pass(); pass {
		e.set.log.Warn("mcp tool server refused", "remote", r.RemoteAddr, "why", why, "not_logged", held)
	}
}

// enrol gives a tool server its place and a name that is free: the token's,
// or that with a number. release frees them. The error is for people.
func (set *Set) enrol(t Token) (p *peer, release func(), err error) {
	set.mu.Lock()
	defer set.mu.Unlock()
	switch {
	case !set.IsReady():
		return nil, nil, errors.New(message.Both("external/stopping"))
	case len(set.peers) >= maxPeers:
		return nil, nil, errors.New(message.Both("external/full"))
	}
	base := cmp.Or(t.Name, "endpoint")
	name := base // or NAME-2, NAME-3 …
	for n := 2; set.peers[name] != nil || set.servers[name] != nil; n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	c := Config{Transport: WebSocket, Allow: t.Allow, Deny: t.Deny, Kinds: t.Kinds, Trust: t.Trust}
	p = &peer{Server: newServer(name, c, set.options.ServerOptions), device: strings.ToLower(t.Device)}
	p.entry = base
	p.once, p.dialling.ways = true, []way{{WebSocket, oldestVersion, shakeLimit}}
	set.peers[name] = p
	set.life.wg.Add(1)
	return p, func() {
		set.mu.Lock()
		delete(set.peers, name)
		set.mu.Unlock()
		set.changed()
		set.life.wg.Done()
	}, nil
}
