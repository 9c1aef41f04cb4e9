package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
	if denied == nil && !isJSON(r) {
		denied = &denial{http.StatusUnsupportedMediaType, codeBadRequest, "gateway/body-no-json"}
	}
	if denied != nil {
		g.guard.note(w, r, c, denied)
		problem(w, r, denied.status, denied.code, c.Say(denied.text))
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
		g.serveRPC(w, r, c, r.URL.Query().Get("stream"))
	case strings.HasPrefix(path, pathRPC+"/"):
		stream, err := url.PathUnescape(path[len(pathRPC)+1:])
		if err != nil || stream == "" {
			stream = "?" // no stream has that name
		}
		g.serveRPC(w, r, c, stream)
	case path == pathConnect:
		g.serveEvents(w, r, c)
	case path == pathSocket:
		g.serveSocket(w, r, c)
	default:
		g.serveREST(w, r, c, path)
	}
}

// problem answers with an error in the shape of the path. REST has {success,
// error, isError}, JSON-RPC an error with no id.
func problem(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	if strings.HasPrefix(r.URL.Path, pathRPC) && r.Method == http.MethodPost {
		replyRaw(w, status, rpcFailure(rpcMessage{}, problemOf(catalog.CodeRefused, message)))
		return
	}
	reply(w, status, restError{Error: restProblem{code, message}, IsError: true})
}

// noRoom answers a request, m if it is one of JSON-RPC, for which too many sessions are open.
func noRoom(w http.ResponseWriter, r *http.Request, c catalog.Caller, m rpcMessage) {
	w.Header().Set("Retry-After", "10")
	why := c.Say("gateway/too-many-sessions")
	if len(m.ID) > 0 {
		replyRaw(w, http.StatusServiceUnavailable, rpcFailure(m, problemOf(catalog.CodeRefused, why)))
		return
	}
	problem(w, r, http.StatusServiceUnavailable, codeRate, why)
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

// healthReport is the answer to GET /api/mcp/health.
type healthReport struct {
	Success   bool     `json:"success"`
	Status    string   `json:"status"`
	Tools     int      `json:"toolsCount"`
	Resources int      `json:"resourcesCount"`
	Prompts   int      `json:"promptsCount"`
	Streams   []string `json:"streams"`
	Protocol  string   `json:"protocolVersion"`
	Supported []string `json:"supportedProtocolVersions"`
	Version   string   `json:"version"`
	Server    string   `json:"serverVersion"`
	Uptime    float64  `json:"uptime"` // seconds
}

// health answers GET /api/mcp/health. It is open to all; a caller that is not let in
// sees no names and no numbers.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		problem(w, r, http.StatusMethodNotAllowed, codeMethod, catalog.CallerOf(r).Say("gateway/http-method"))
		return
	}
	out := healthReport{
		Success: true, Status: "healthy", Streams: []string{}, Protocol: catalog.Version2024, Supported: sdk.SupportedProtocolVersions(),
		Version: "1.0.0", Server: g.version, Uptime: time.Since(g.began).Round(time.Millisecond).Seconds(),
	}
	if g.disabled {
		out.Success, out.Status = false, "disabled"
		reply(w, http.StatusServiceUnavailable, out)
		return
	}
	if c, denied := g.guard.admit(r); denied == nil {
		v, _ := g.views.Of(c, "")
		out.Tools, out.Resources, out.Prompts = len(v.Tools()), len(v.Resources()), len(v.Prompts())
		out.Streams = g.views.Streams(c)
		// Health itself asks no device for what it offers: the server would keep it all for a
		// client that only watches.
		for stream, p := range g.follower.Asleep(c.Sees) {
			if !slices.Contains(out.Streams, stream) {
				tools, resources := p.Len()
				out.Tools, out.Resources, out.Streams = out.Tools+tools, out.Resources+resources, append(out.Streams, stream)
			}
		}
		slices.Sort(out.Streams)
	}
	reply(w, http.StatusOK, out)
}
