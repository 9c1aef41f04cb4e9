package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"xiaozhi/mcp/gateway/catalog"
)

// The headers of the streamable transport.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// rpcRequests serves /api/mcp/jsonrpc: one address for clients with a session, for
// those of the newest revision, and for those that just post a call (docs/mcp.md 2).
type rpcRequests struct{ *front }

// serve serves one request.
func (g rpcRequests) serve(w http.ResponseWriter, r *http.Request, c catalog.Caller, stream string) {
	c.Via = "jsonrpc"
	r = r.WithContext(catalog.WithCaller(r.Context(), c))
	switch r.Method {
	case http.MethodPost:
		g.postRPC(w, r, c, stream)
	case http.MethodGet, http.MethodDelete:
		v, ok := g.views.Kept(c, stream)
		if !ok {
			noStream(w, r, c, stream)
			return
		}
		if r.Header.Get(headerSession) == "" {
			w.Header().Set("Allow", "POST")
			problem(w, r, http.StatusMethodNotAllowed, codeMethod,
				c.Say("gateway/no-session"))
			return
		}
		g.stateful(w, r, v, nil)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		problem(w, r, http.StatusMethodNotAllowed, codeMethod, c.Say("gateway/http-method"))
	}
}

// noStream answers that there is no such stream.
func noStream(w http.ResponseWriter, r *http.Request, c catalog.Caller, stream string) {
	problem(w, r, http.StatusNotFound, codeNoStream, c.Say("gateway/stream-unknown", catalog.Clip(stream)))
}

// postRPC takes one message, or a batch of them, to where it belongs.
func (g rpcRequests) postRPC(w http.ResponseWriter, r *http.Request, c catalog.Caller, stream string) {
	body, status, err := g.readBody(w, r)
	if err != nil {
		reply(w, status, rpcError{"2.0", []byte("null"), rpcProblem{jsonrpc.CodeInvalidRequest, bodyProblem(c, status, err)}})
		return
	}
	var m rpcMessage
	shallow := !deep(body)
	parsed := shallow && json.Unmarshal(body, &m) == nil
	way := wayOf(r, m)
	find := g.views.Of
	if r.Header.Get(headerSession) != "" {
		find = g.views.Kept
	}
	v, ok := find(c, stream)
	if !ok {
		reply(w, http.StatusNotFound, rpcError{"2.0", idOf(m), rpcProblem{catalog.CodeRefused, c.Say("gateway/stream-unknown", catalog.Clip(stream))}})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	if !shallow {
		reply(w, http.StatusBadRequest, rpcError{"2.0", []byte("null"), rpcProblem{jsonrpc.CodeInvalidRequest, c.Say("gateway/nested")}})
		return
	}
	if way == wayBare {
		g.bareRPC(w, r, v, c, body)
		return
	}
	problem, status := g.checkForSDK(c, m, parsed, body)
	if problem == nil && way == wayStateful && parsed && m.Method != nil {
		problem, status = checkMethod(m, c), http.StatusOK
	}
	if problem != nil {
		reply(w, status, rpcError{"2.0", idOf(m), *problem})
		return
	}
	if way == wayStateful {
		g.stateful(w, r, v, &m)
		return
	}
	g.modern(w, r, v, c, m)
}

// way is one of the three ways in which a message can be served.
type way int

const (
	wayBare     way = iota // for itself, without a handshake, in an older revision
	wayStateful            // in a session, or to open one
	wayModern              // for itself, in the newest revision
)

// wayOf returns the way of a message; m is empty if it could not be read.
func wayOf(r *http.Request, m rpcMessage) way {
	version := r.Header.Get(headerVersion)
	switch {
	case r.Header.Get(headerSession) != "" && version < catalog.VersionModern:
		return wayStateful
	case version >= catalog.VersionModern || metaVersion(m.Params) != "":
		return wayModern
	case m.Method != nil && *m.Method == "initialize" && m.Version == "2.0":
		return wayStateful
	}
	return wayBare
}

// checkForSDK returns what is wrong with a message, or a batch, that the SDK is to
// read itself, and with which HTTP status that is told.
func (g rpcRequests) checkForSDK(c catalog.Caller, m rpcMessage, parsed bool, body []byte) (*rpcProblem, int) {
	if !parsed {
		return g.checkBatch(c, body)
	}
	if problem := checkID(m.ID, c); problem != nil {
		return problem, http.StatusBadRequest
	}
	read, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil, 0 // the SDK says why
	}
	return checkReading(m, read, c), http.StatusBadRequest
}

// modern serves a request of the newest revision. One that listens for changes
// lasts, and takes a place as a session does.
func (g rpcRequests) modern(w http.ResponseWriter, r *http.Request, v *catalog.View, c catalog.Caller, m rpcMessage) {
	out := plainly(w, c, m)
	defer out.stop()
	listens := m.Method != nil && *m.Method == "subscriptions/listen"
	out.noEvents = !listens && !acceptsEvents(r)
	acceptAll(r)
	if listens {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		done, ok := g.sessions.open(c.Name(), cancel)
		if !ok {
			w.Header().Set("Retry-After", "10")
			reply(w, http.StatusServiceUnavailable, rpcError{"2.0", idOf(m), rpcProblem{catalog.CodeRefused, c.Say("gateway/too-many-sessions")}})
			return
		}
		defer done()
		out.lasts(cancel)
		r = r.WithContext(ctx)
	}
	v.Stateless.ServeHTTP(out, r)
}

// acceptsEvents reports whether a client says that it can read a stream of events.
// Clients that take anything read JSON.
func acceptsEvents(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Accept"), func(accept string) bool { return strings.Contains(accept, "text/event-stream") })
}

// acceptAll makes a request accept what the SDK wants accepted: simple clients say
// nothing of it.
func acceptAll(r *http.Request) {
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
}
