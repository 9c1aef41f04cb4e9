package gateway

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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
	if version := r.Header.Get(headerVersion); version != "" && !slices.Contains(sdk.SupportedProtocolVersions(), version) {
		reply(w, http.StatusBadRequest, rpcError{"2.0", []byte("null"), rpcProblem{jsonrpc.CodeInvalidRequest, say(c.language, "不支持的协议版本: ", "unsupported protocol version: ") + clip(version)}})
		return
	}
	c = c.until(r.Context())
	r = r.WithContext(withCaller(r.Context(), c))
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
		refuse(jsonrpc.CodeInvalidRequest, batchZH, batchEN)
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

// checkBatch says what is wrong with a batch for a session: the SDK would take any
// number of messages, and answer only one of those that share an id.
func (g *Gateway) checkBatch(c caller, body []byte) (*rpcProblem, int) {
	var messages []rpcMessage
	if json.Unmarshal(body, &messages) != nil {
		return nil, 0 // the SDK says why
	}
	wrong := func(status int, zh, en string) (*rpcProblem, int) {
		return &rpcProblem{jsonrpc.CodeInvalidRequest, say(c.language, zh, en)}, status
	}
	if len(messages) == 0 || len(messages) > maxBatch {
		return wrong(http.StatusBadRequest, batchZH, batchEN)
	}
	ids := map[string]struct{}{}
	for i, m := range messages {
		if problem := checkID(m.ID, c.language); problem != nil {
			return problem, http.StatusBadRequest
		}
		if _, used := ids[string(m.ID)]; used && len(m.ID) > 0 {
			return wrong(http.StatusBadRequest, "同一批请求里有重复的 id", "an id is there twice in the batch")
		}
		ids[string(m.ID)] = struct{}{}
		if i > 0 && !g.guard.within(c) {
			return wrong(http.StatusTooManyRequests, "请求太频繁", "too many requests")
		}
	}
	return nil, 0
}

// What is said of a batch that is too short or too long (maxBatch).
const (
	batchZH = "批量请求应有 1 到 50 条"
	batchEN = "a batch has 1 to 50 messages"
)

// bareOne is the answer to one message; nil: there is none. One that is not the
// first of its request counts against the rate of the caller's token.
func (g *Gateway) bareOne(r *http.Request, v *view, c caller, body []byte, further bool) json.RawMessage {
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
	if further && !g.guard.within(c) {
		return rpcFailure(m, codeRefused, say(c.language, "请求太频繁", "too many requests"))
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

// checkID refuses ids that would come back as others: the SDK keeps numbers as
// whole ones, and reads them as floating ones.
func checkID(id json.RawMessage, language string) *rpcProblem {
	if len(id) == 0 || id[0] == '"' {
		return nil
	}
	if f, err := strconv.ParseFloat(string(id), 64); !validID(id) || err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return &rpcProblem{jsonrpc.CodeInvalidRequest, say(language, "id 必须是字符串或不太大的整数", "the id must be a text or a whole number below 2^53")}
	}
	return nil
}

// checkReading refuses a message that the SDK reads otherwise than we do: it has a
// key twice, or once in capitals, and would be checked as one request and served
// as another.
func checkReading(m rpcMessage, message jsonrpc.Message, language string) *rpcProblem {
	r, ok := message.(*jsonrpc.Request)
	if ok == (m.Method != nil) && (!ok || *m.Method == r.Method && (len(m.ID) > 0) == r.IsCall()) {
		return nil
	}
	return &rpcProblem{jsonrpc.CodeInvalidRequest, say(language, "这条消息有两种读法", "this message can be read in two ways")}
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
