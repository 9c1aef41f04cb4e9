package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// bareRPC answers a message without a handshake, as a line of curl sends it: plain
// JSON, HTTP 200, errors as JSON-RPC has them.
func (g rpcRequests) bareRPC(w http.ResponseWriter, r *http.Request, v *catalog.View, c catalog.Caller, body []byte) {
	if version := r.Header.Get(headerVersion); version != "" && !slices.Contains(sdk.SupportedProtocolVersions(), version) {
		reply(w, http.StatusBadRequest, rpcError{"2.0", []byte("null"), rpcProblem{jsonrpc.CodeInvalidRequest, c.Say("gateway/version-unknown", catalog.Clip(version))}})
		return
	}
	c = c.Until(r.Context())
	r = r.WithContext(catalog.WithCaller(r.Context(), c))
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		g.bareBatch(w, r, v, c, body)
		return
	}
	if answer := g.bareOne(r, v, c, body, false); answer != nil {
		replyRaw(w, http.StatusOK, answer)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// bareBatch answers a batch, in its order.
func (g rpcRequests) bareBatch(w http.ResponseWriter, r *http.Request, v *catalog.View, c catalog.Caller, body []byte) {
	var messages []json.RawMessage
	refuse := func(code int, id string) {
		reply(w, http.StatusOK, rpcError{"2.0", []byte("null"), rpcProblem{code, c.Say(id)}})
	}
	switch err := json.Unmarshal(body, &messages); {
	case err != nil:
		refuse(jsonrpc.CodeParseError, "gateway/no-json")
		return
	case len(messages) == 0 || len(messages) > maxBatch:
		refuse(jsonrpc.CodeInvalidRequest, "gateway/batch-size")
		return
	}
	var answers []json.RawMessage
	for i, m := range messages {
		answer := g.bareOne(r, v, c, m, i > 0)
		if answer != nil {
			answers = append(answers, answer)
		}
	}
	if len(answers) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	reply(w, http.StatusOK, answers)
}

// checkBatch returns what is wrong with a batch for a session: the SDK would take any
// number of messages, and answer only one of those that share an id.
func (g rpcRequests) checkBatch(c catalog.Caller, body []byte) (*rpcProblem, int) {
	var messages []rpcMessage
	if json.Unmarshal(body, &messages) != nil {
		return nil, 0 // the SDK says why
	}
	wrong := func(status int, id string) (*rpcProblem, int) {
		return &rpcProblem{jsonrpc.CodeInvalidRequest, c.Say(id)}, status
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
		if i > 0 && !g.guard.within(c) {
			return wrong(http.StatusTooManyRequests, "gateway/too-many-requests")
		}
	}
	return nil, 0
}

// bareOne returns the answer to one message; nil: there is none. One that is not the
// first of its request counts against the rate of the caller's token.
func (g rpcRequests) bareOne(r *http.Request, v *catalog.View, c catalog.Caller, body []byte, further bool) json.RawMessage {
	var m rpcMessage
	if err := json.Unmarshal(body, &m); err != nil {
		if json.Valid(body) {
			return rpcFailure(m, jsonrpc.CodeInvalidRequest, c.Say("gateway/no-request"))
		}
		return rpcFailure(rpcMessage{}, jsonrpc.CodeParseError, c.Say("gateway/no-json"))
	}
	if problem := checkMessage(m, c); problem != nil {
		return rpcFailure(m, problem.Code, problem.Message)
	}
	if m.Method == nil || len(m.ID) == 0 { // an answer that was not asked for, or a notification
		return nil
	}
	if further && !g.guard.within(c) {
		return rpcFailure(m, catalog.CodeRefused, c.Say("gateway/too-many-requests"))
	}
	if problem := checkMethod(m, c); problem != nil {
		return rpcFailure(m, problem.Code, problem.Message)
	}
	switch *m.Method {
	case "initialize", "resources/subscribe", "resources/unsubscribe", "server/discover":
		return rpcFailure(m, jsonrpc.CodeInvalidRequest, c.Say("gateway/session-needed", *m.Method))
	}
	return askServer(r, v, c, m)
}

// askServer has the server of the view answer one request.
func askServer(r *http.Request, v *catalog.View, c catalog.Caller, m rpcMessage) json.RawMessage {
	version := r.Header.Get(headerVersion)
	if version == "" {
		version = catalog.Version2024
	}
	answer, err := v.Ask(r.Context(), c, version, r.Header, &jsonrpc.Request{Method: *m.Method, Params: m.Params})
	if err != nil {
		return rpcFailure(m, catalog.CodeRefused, c.Say("gateway/cancelled"))
	}
	return encodeAnswer(m, answer)
}
