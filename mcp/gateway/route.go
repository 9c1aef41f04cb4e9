package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"xiaozhi/mcp/gateway/catalog"
)

// The paths of the gateway.
const (
	pathAPI     = "/api/mcp"
	pathRPC     = pathAPI + "/jsonrpc"
	pathConnect = pathAPI + "/connect"
	pathHealth  = pathAPI + "/health"
	pathSocket  = "/mcp/ws"
)

// Serves reports whether a path is one of the gateway's. It must be asked before
// a mux cleans the path: URIs of resources hold "//".
func Serves(path string) bool {
	return path == pathAPI || strings.HasPrefix(path, pathAPI+"/") || path == pathSocket || path == pathSocket+"/"
}

// ServeHTTP serves one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 { // an answer may leave the body to the server, which would wait for it
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.bodyTime)) // recorders have none
	}
	if g.preflight(w, r) {
		return
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // what cannot be read would be left out: a view would become that of all
		problem(w, r, http.StatusBadRequest, codeBadRequest, catalog.CallerOf(r).Say("gateway/query-unread", catalog.Clip(catalog.OneLine(err))))
		return
	}
	path := strings.TrimSuffix(r.URL.EscapedPath(), "/")
	if path == pathHealth {
		g.health(w, r)
		return
	}
	c, denied := g.guard.admit(r)
	if denied != nil {
		g.guard.refuse(w, r, c, denied)
		return
	}
	if g.disabled {
		problem(w, r, http.StatusServiceUnavailable, codeDisabled, c.Say("gateway/switched-off"))
		return
	}
	g.follower.Wake()
	r = r.WithContext(catalog.WithCaller(r.Context(), c))
	switch {
	case path == pathRPC:
		rpcRequests{g.front}.serve(w, r, c, r.URL.Query().Get("stream"))
	case strings.HasPrefix(path, pathRPC+"/"):
		stream, err := url.PathUnescape(path[len(pathRPC)+1:])
		if err != nil || stream == "" {
			stream = "?" // no stream has that name
		}
		rpcRequests{g.front}.serve(w, r, c, stream)
	case path == pathConnect:
		eventStreams{g.front}.serve(w, r, c)
	case path == pathSocket:
		sockets{g.front}.serve(w, r, c)
	default:
		restRequests{g.front}.serve(w, r, c, path)
	}
}

// isRPC reports whether a request is answered as JSON-RPC is.
func isRPC(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, pathRPC) }

// problem answers with an error in the shape of the path. REST has {success,
// error, isError}, JSON-RPC an error with no id.
func problem(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	if isRPC(r) && r.Method == http.MethodPost {
		reply(w, status, rpcError{"2.0", []byte("null"), rpcProblem{catalog.CodeRefused, message}})
		return
	}
	reply(w, status, restError{Error: restProblem{code, message}, IsError: true})
}

// preflight answers a browser that asks for leave, and marks the answers to those
// that have it. Only origins of the settings have it.
func (g *Gateway) preflight(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if g.guard.knownOrigin(origin) {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After")
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	if !g.guard.knownOrigin(origin) {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Accept-Language, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
