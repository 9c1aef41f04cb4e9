package gateway

import (
	"context"
	"net/http"

	"xiaozhi/mcp/gateway/catalog"
)

// stateful serves a request of a session, or opens one. m is nil for GET and DELETE.
func (g rpcRequests) stateful(w http.ResponseWriter, r *http.Request, v *catalog.View, m *rpcMessage) {
	id := r.Header.Get(headerSession)
	var asked rpcMessage
	noEvents := false
	if m != nil {
		asked = *m
		noEvents = !acceptsEvents(r)
		acceptAll(r)
	}
	out := plainly(w, catalog.CallerFrom(r.Context()), asked)
	out.noEvents = noEvents
	if id == "" {
		if !g.sessions.reserve(v.Token()) {
			w.Header().Set("Retry-After", "10")
			reply(w, http.StatusServiceUnavailable, rpcError{"2.0", idOf(asked), rpcProblem{
				catalog.CodeRefused,
				catalog.CallerFrom(r.Context()).Say("gateway/too-many-sessions"),
			}})
			return
		}
		defer g.sessions.release(v.Token())
		r = g.opening(r, v, out)
	}
	defer g.sessions.use(id)()
	defer out.stop()
	switch r.Method {
	case http.MethodGet:
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		out.lasts(cancel)
	case http.MethodDelete:
		if g.sessions.remove(id, v) {
			v.EndSession(id)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	v.Sessions.ServeHTTP(out, r)
}

// opening returns r with a caller that lasts as long as the session that r opens,
// which is noted before its client knows of it.
func (g rpcRequests) opening(r *http.Request, v *catalog.View, out *plainWriter) *http.Request {
	ctx, leave := context.WithCancel(context.WithoutCancel(r.Context())) // it outlives its first request
	out.before = func(header http.Header) {
		if id := header.Get(headerSession); id != "" {
			g.sessions.add(id, v, leave)
		} else {
			leave()
		}
	}
	return r.WithContext(catalog.WithCaller(r.Context(), catalog.CallerFrom(r.Context()).Until(ctx)))
}
