package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// methods are the requests that clients may send, and whether they need params.
func methods(name string) (known, params bool) {
	switch name {
	case "initialize", "tools/call", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"prompts/get", "completion/complete", "logging/setLevel":
		return true, true
	case "ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover":
		return true, false
	}
	return false, false
}

// bareRPC answers a message without a handshake, as the curl and Python examples
// of the seeds send it: plain JSON, HTTP 200, errors as JSON-RPC has them.
func (g *Gateway) bareRPC(w http.ResponseWriter, r *http.Request, v *view, c caller, body []byte) {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		g.bareBatch(w, r, v, c, body)
		return
	}
	if answer := g.bareOne(r, v, c, body); answer != nil {
		replyRaw(w, http.StatusOK, answer)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// bareBatch answers a batch, in its order.
func (g *Gateway) bareBatch(w http.ResponseWriter, r *http.Request, v *view, c caller, body []byte) {
	var messages []json.RawMessage
	refuse := func(code int, zh, en string) {
		reply(w, http.StatusOK, rpcError{"2.0", []byte("null"), rpcProblem{code, say(c.language, zh, en)}})
	}
	switch err := json.Unmarshal(body, &messages); {
	case err != nil:
		refuse(jsonrpc.CodeParseError, "不是有效的 JSON", "this is no JSON")
		return
	case len(messages) == 0 || len(messages) > maxBatch:
		refuse(jsonrpc.CodeInvalidRequest, "批量请求应有 1 到 "+strconv.Itoa(maxBatch)+" 条", "a batch has 1 to "+strconv.Itoa(maxBatch)+" messages")
		return
	}
	var answers []json.RawMessage
	for _, m := range messages {
		if answer := g.bareOne(r, v, c, m); answer != nil {
			answers = append(answers, answer)
		}
	}
	if len(answers) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	reply(w, http.StatusOK, answers)
}

// bareOne is the answer to one message; nil: there is none.
func (g *Gateway) bareOne(r *http.Request, v *view, c caller, body []byte) json.RawMessage {
	var m rpcMessage
	if err := json.Unmarshal(body, &m); err != nil {
		if json.Valid(body) {
			return rpcFailure(m, jsonrpc.CodeInvalidRequest, say(c.language, "不是 JSON-RPC 请求", "this is no JSON-RPC request"))
		}
		return rpcFailure(rpcMessage{}, jsonrpc.CodeParseError, say(c.language, "不是有效的 JSON", "this is no JSON"))
	}
	if problem := checkMessage(m, c.language); problem != nil {
		return rpcFailure(m, problem.Code, problem.Message)
	}
	if m.Method == nil || len(m.ID) == 0 { // an answer to nobody's question, or a notification
		return nil
	}
	if problem := g.checkMethod(m, c.language); problem != nil {
		return rpcFailure(m, problem.Code, problem.Message)
	}
	switch *m.Method {
	case "initialize", "resources/subscribe", "resources/unsubscribe", "server/discover":
		return rpcFailure(m, jsonrpc.CodeInvalidRequest, say(c.language, "这个方法需要单独的会话: ", "this method needs a session of its own: ")+*m.Method)
	}
	return askServer(r, v, c, m)
}

// askServer has the server of the view answer one request.
func askServer(r *http.Request, v *view, c caller, m rpcMessage) json.RawMessage {
	version := r.Header.Get(headerVersion)
	if version == "" {
		version = version2024
	}
	gone := rpcFailure(m, codeRefused, say(c.language, "请求已取消", "the request was cancelled"))
	line, err := v.bareLine(r.Context(), version)
	if err != nil {
		return gone
	}
	answer, err := line.ask(r.Context(), c, r.Header, m)
	if err != nil {
		return gone
	}
	return encodeAnswer(m, answer)
}

// checkMessage says what is wrong with a message as JSON-RPC.
func checkMessage(m rpcMessage, language string) *rpcProblem {
	switch {
	case m.Version != "2.0":
		return &rpcProblem{jsonrpc.CodeInvalidRequest, say(language, `缺少 "jsonrpc":"2.0"`, `"jsonrpc":"2.0" is missing`)}
	case m.Method == nil && m.Result == nil && m.Error == nil || m.Method != nil && *m.Method == "":
		return &rpcProblem{jsonrpc.CodeInvalidRequest, say(language, "缺少 method", "method is missing")}
	case len(m.ID) > 0 && !validID(m.ID):
		return &rpcProblem{jsonrpc.CodeInvalidRequest, say(language, "id 必须是字符串或数字", "the id must be a text or a number")}
	}
	return nil
}

// checkMethod says what is wrong with the method of a message or its params.
func (g *Gateway) checkMethod(m rpcMessage, language string) *rpcProblem {
	if len(m.ID) == 0 {
		return nil
	}
	known, params := methods(*m.Method)
	switch {
	case !known:
		return &rpcProblem{jsonrpc.CodeMethodNotFound, say(language, "方法未找到: ", "method not found: ") + clip(*m.Method)}
	case len(m.Params) > 0 && m.Params[0] != '{' && string(m.Params) != "null",
		params && (len(m.Params) == 0 || string(m.Params) == "null"):
		return &rpcProblem{jsonrpc.CodeInvalidParams, say(language, "params 必须是对象", "params must be an object")}
	}
	return nil
}

// rpcFailure is an error as an answer to m.
func rpcFailure(m rpcMessage, code int, message string) json.RawMessage {
	data, err := json.Marshal(rpcError{"2.0", idOf(m), rpcProblem{code, message}})
	if err != nil {
		return json.RawMessage(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	return data
}
