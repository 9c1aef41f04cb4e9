package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// The headers of the streamable transport.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// serveRPC serves /api/mcp/jsonrpc: one address for clients with a session, for
// those of the newest revision, and for those that just post a call (docs/mcp.md 2).
func (f *front) serveRPC(w http.ResponseWriter, r *http.Request, c catalog.Caller, stream string) {
	c.Via = "jsonrpc"
	r = r.WithContext(catalog.WithCaller(r.Context(), c))
	switch r.Method {
	case http.MethodPost:
		f.postRPC(w, r, c, stream)
	case http.MethodGet, http.MethodDelete:
		v, ok := f.views.Kept(c, stream)
		if !ok {
			noStream(w, r, c, stream)
			return
		}
		if r.Header.Get(headerSession) == "" {
			w.Header().Set("Allow", "POST")
			problem(w, r, http.StatusMethodNotAllowed, codeMethod, c.Say("gateway/no-session"))
			return
		}
		f.stateful(w, r, v, c, rpcMessage{})
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		problem(w, r, http.StatusMethodNotAllowed, codeMethod, c.Say("gateway/http-method"))
	}
}

func noStream(w http.ResponseWriter, r *http.Request, c catalog.Caller, stream string) {
	problem(w, r, http.StatusNotFound, codeNoStream, c.Say("gateway/stream-unknown", catalog.Clip(stream)))
}

// postRPC takes one message, or a batch of them, to where it belongs.
func (f *front) postRPC(w http.ResponseWriter, r *http.Request, c catalog.Caller, stream string) {
	body, status, wrong := f.readBody(w, r, c)
	if wrong != "" {
		replyRaw(w, status, rpcFailure(rpcMessage{}, problemOf(jsonrpc.CodeInvalidRequest, wrong)))
		return
	}
	var m rpcMessage
	shallow := !deep(body)
	parsed := shallow && json.Unmarshal(body, &m) == nil
	way := wayOf(r, m)
	find := f.views.Of
	if r.Header.Get(headerSession) != "" {
		find = f.views.Kept
	}
	v, ok := find(c, stream)
	if !ok {
		replyRaw(w, http.StatusNotFound, rpcFailure(m, problemOf(catalog.CodeRefused, c.Say("gateway/stream-unknown", catalog.Clip(stream)))))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	if !shallow {
		replyRaw(w, http.StatusBadRequest, rpcFailure(rpcMessage{}, problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/nested"))))
		return
	}
	if way == wayBare {
		f.bareRPC(w, r, v, c, body)
		return
	}
	problem, status := f.checkForSDK(c, m, parsed, body)
	if problem == nil && way == wayStateful && parsed && m.Method != nil {
		problem, status = checkMethod(m, c), http.StatusOK
	}
	if problem != nil {
		replyRaw(w, status, rpcFailure(m, problem))
		return
	}
	if way == wayStateful {
		f.stateful(w, r, v, c, m)
		return
	}
	f.modern(w, r, v, c, m)
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
func (f *front) checkForSDK(c catalog.Caller, m rpcMessage, parsed bool, body []byte) (*jsonrpc.Error, int) {
	var messages []rpcMessage
	if !parsed && json.Unmarshal(body, &messages) == nil {
		return f.checkBatch(c, messages)
	}
	if problem := checkID(m.ID, c); parsed && problem != nil {
		return problem, http.StatusBadRequest
	}
	if read, err := jsonrpc.DecodeMessage(body); parsed && err == nil {
		return checkReading(m, read, c), http.StatusBadRequest
	}
	return nil, 0 // where it cannot be read, the SDK says why
}

// modern serves a request of the newest revision. One that listens for changes
// lasts, and takes a place as a session does.
func (f *front) modern(w http.ResponseWriter, r *http.Request, v *catalog.View, c catalog.Caller, m rpcMessage) {
	out := plainly(w, c, m)
	defer out.stop()
	listens := m.Method != nil && *m.Method == "subscriptions/listen"
	out.noEvents = !listens && !acceptsEvents(r)
	acceptAll(r)
	if listens {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		done, ok := f.sessions.open(c, cancel)
		if !ok {
			noRoom(w, r, c, m)
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

// bareRPC answers a message without a handshake, or a batch in its order, as a line of
// curl sends it: plain JSON, HTTP 200, errors as JSON-RPC has them.
func (f *front) bareRPC(w http.ResponseWriter, r *http.Request, v *catalog.View, c catalog.Caller, body []byte) {
	refuse := func(status int, code int64, why string) {
		replyRaw(w, status, rpcFailure(rpcMessage{}, problemOf(code, why)))
	}
	if version := r.Header.Get(headerVersion); version != "" && !slices.Contains(sdk.SupportedProtocolVersions(), version) {
		refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, c.Say("gateway/version-unknown", catalog.Clip(version)))
		return
	}
	body = bytes.TrimSpace(body)
	messages, isBatch := []json.RawMessage{body}, len(body) > 0 && body[0] == '['
	if isBatch {
		messages = nil
		if err := json.Unmarshal(body, &messages); err != nil {
			refuse(http.StatusOK, jsonrpc.CodeParseError, c.Say("gateway/no-json"))
			return
		}
		if len(messages) == 0 || len(messages) > maxBatch {
			refuse(http.StatusOK, jsonrpc.CodeInvalidRequest, c.Say("gateway/batch-size"))
			return
		}
	}
	c = c.Until(r.Context())
	r = r.WithContext(catalog.WithCaller(r.Context(), c))
	var answers []json.RawMessage
	for i, m := range messages {
		if answer := f.bareOne(r, v, c, m, i > 0); answer != nil {
			answers = append(answers, answer)
		}
	}
	switch {
	case len(answers) == 0:
		w.WriteHeader(http.StatusAccepted)
	case isBatch:
		reply(w, http.StatusOK, answers)
	default:
		replyRaw(w, http.StatusOK, answers[0])
	}
}

// checkBatch returns what is wrong with a batch for a session: the SDK would take any
// number of messages, and answer only one of those that share an id.
func (f *front) checkBatch(c catalog.Caller, messages []rpcMessage) (*jsonrpc.Error, int) {
	wrong := func(status int, id string) (*jsonrpc.Error, int) {
		return problemOf(jsonrpc.CodeInvalidRequest, c.Say(id)), status
	}
	if len(messages) == 0 || len(messages) > maxBatch {
		return wrong(http.StatusBadRequest, "gateway/batch-size")
	}
	ids := map[string]struct{}{}
	for i, m := range messages {
		if problem := checkID(m.ID, c); problem != nil {
			return problem, http.StatusBadRequest
		}
		if _, used := ids[string(m.ID)]; used && len(m.ID) > 0 {
			return wrong(http.StatusBadRequest, "gateway/batch-ids")
		}
		ids[string(m.ID)] = struct{}{}
		if i > 0 && !f.guard.within(c) {
			return wrong(http.StatusTooManyRequests, "gateway/too-many-requests")
		}
	}
	return nil, 0
}

// bareOne returns the answer to one message; nil: there is none. One that is not the
// first of its request counts against the rate of the caller's token.
func (f *front) bareOne(r *http.Request, v *catalog.View, c catalog.Caller, body []byte, further bool) json.RawMessage {
	m, problem := readMessage(body, c)
	if problem == nil && (m.Method == nil || len(m.ID) == 0) { // an answer that was not asked for, or a notification
		return nil
	}
	if problem == nil && further && !f.guard.within(c) {
		problem = problemOf(catalog.CodeRefused, c.Say("gateway/too-many-requests"))
	}
	if problem == nil {
		problem = checkMethod(m, c)
	}
	if problem != nil {
		return rpcFailure(m, problem)
	}
	switch *m.Method {
	case "initialize", "resources/subscribe", "resources/unsubscribe", "server/discover":
		return rpcFailure(m, problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/session-needed", *m.Method)))
	}
	version := cmp.Or(r.Header.Get(headerVersion), catalog.Version2024)
	answer, err := v.Ask(r.Context(), c, version, r.Header, &jsonrpc.Request{Method: *m.Method, Params: m.Params})
	if err != nil {
		return rpcFailure(m, problemOf(catalog.CodeRefused, c.Say("gateway/cancelled")))
	}
	return rpcResult(m, answer)
}

// stateful serves a request of a session, or opens one. m is that of a POST. The caller
// of a session lasts as long as it; it is noted before its client knows of it.
func (f *front) stateful(w http.ResponseWriter, r *http.Request, v *catalog.View, c catalog.Caller, m rpcMessage) {
	out := plainly(w, c, m)
	if r.Method == http.MethodPost {
		out.noEvents = !acceptsEvents(r)
		acceptAll(r)
	}
	id := r.Header.Get(headerSession)
	if id == "" {
		if !f.sessions.reserve(c.Holder()) {
			noRoom(w, r, c, m)
			return
		}
		defer f.sessions.release(c.Holder())
		ctx, leave := context.WithCancel(context.WithoutCancel(r.Context())) // it outlives its first request
		out.before = func(header http.Header) {
			if id := header.Get(headerSession); id != "" {
				f.sessions.add(id, v, leave)
			} else {
				leave()
			}
		}
		r = r.WithContext(catalog.WithCaller(r.Context(), c.Until(ctx)))
	}
	defer f.sessions.use(id)()
	defer out.stop()
	switch r.Method {
	case http.MethodGet:
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		out.lasts(cancel)
	case http.MethodDelete:
		if f.sessions.remove(id, v) {
			v.EndSession(id)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	v.Sessions.ServeHTTP(out, r)
}
