package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The codes of REST errors (mcp.md 7.4).
const (
	codeNoTool       = "TOOL_NOT_FOUND"
	codeArguments    = "INVALID_ARGUMENTS"
	codeNoStream     = "STREAM_NOT_FOUND"
	codeNoResource   = "RESOURCE_NOT_FOUND"
	codeNoPrompt     = "PROMPT_NOT_FOUND"
	codeFailed       = "EXECUTION_FAILED"
	codeBadRequest   = "BAD_REQUEST"
	codeUnauthorized = "UNAUTHORIZED"
	codeForbidden    = "FORBIDDEN"
	codeRate         = "RATE_LIMITED"
	codeMethod       = "METHOD_NOT_ALLOWED"
	codeNotFound     = "NOT_FOUND"
	codeDisabled     = "MCP_DISABLED"
)

// restError is the body of each error in REST.
type restError struct {
	Success bool        `json:"success"`
	Error   restProblem `json:"error"`
	IsError bool        `json:"isError"`
}

// restProblem is what went wrong.
type restProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// restTool is a tool as REST lists it.
type restTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func restToolOf(e *entry) restTool { return restTool{e.name, e.def.Description, e.schema} }

func restTools(entries []*entry) []restTool {
	out := make([]restTool, len(entries))
	for i, e := range entries {
		out[i] = restToolOf(e)
	}
	return out
}

// restRequest is one REST request on its way.
type restRequest struct {
	g    *Gateway
	w    http.ResponseWriter
	r    *http.Request
	who  caller
	view *view
}

func (q *restRequest) fail(status int, code, zh, en string) {
	reply(q.w, status, restError{Error: restProblem{code, say(q.who.language, zh, en)}, IsError: true})
}

// allow answers with 405 unless the method is one of them.
func (q *restRequest) allow(allowed ...string) bool {
	method := q.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if slices.Contains(allowed, method) {
		return true
	}
	q.w.Header().Set("Allow", strings.Join(allowed, ", "))
	q.fail(http.StatusMethodNotAllowed, codeMethod, "不支持这个方法", "this method is not served")
	return false
}

// serveREST is everything under /api/mcp that is plain HTTP. Literal paths win
// over names; path is escaped and without a slash at its end.
func (g *Gateway) serveREST(w http.ResponseWriter, r *http.Request, c caller, path string) {
	c.via = "rest"
	c = c.until(r.Context())
	ctx := withCaller(r.Context(), c)
	v, _ := g.views.of(c, "")
	q := &restRequest{g, w, r.WithContext(ctx), c, v}
	rest := strings.TrimPrefix(path, pathAPI)
	name := func(prefix string) (string, bool) {
		escaped, ok := strings.CutPrefix(rest, prefix)
		if !ok || escaped == "" {
			return "", false
		}
		text, err := url.PathUnescape(escaped) // once, or a URI would lose its own escapes
		return text, err == nil
	}
	if stream, ok := name("/tools/stream/"); ok {
		q.stream(stream)
		return
	}
	if rest == "/tools/streams" {
		q.streams()
		return
	}
	if stream := r.URL.Query().Get("stream"); stream != "" && !q.narrow(stream) {
		return
	}
	switch rest {
	case "/tools":
		q.tools()
	case "/tools/call":
		q.call(ctx)
	case "/resources":
		q.resources()
	case "/prompts":
		q.prompts()
	default:
		if tool, ok := name("/tools/"); ok {
			q.tool(tool)
		} else if uri, ok := name("/resources/"); ok {
			q.resource(ctx, uri)
		} else if prompt, ok := name("/prompts/"); ok {
			q.prompt(ctx, prompt)
		} else {
			q.fail(http.StatusNotFound, codeNotFound, "没有这个地址", "nothing is here")
		}
	}
}

// toolList is the answer to GET /api/mcp/tools.
type toolListing struct {
	Success bool       `json:"success"`
	Stream  *string    `json:"stream,omitempty"`
	Tools   []restTool `json:"tools"`
	Count   int        `json:"count"`
}

func (q *restRequest) tools() {
	if !q.allow(http.MethodGet) {
		return
	}
	tools := restTools(q.view.tools())
	reply(q.w, http.StatusOK, toolListing{Success: true, Tools: tools, Count: len(tools)})
}

// narrow makes the view that of one stream, or answers that there is none.
func (q *restRequest) narrow(stream string) bool {
	v, ok := q.g.views.of(q.who, stream)
	if !ok || stream == "" {
		q.fail(http.StatusNotFound, codeNoStream, "工作流未找到: "+clip(stream), "stream not found: "+clip(stream))
		return false
	}
	q.view = v
	return true
}

func (q *restRequest) stream(stream string) {
	if !q.allow(http.MethodGet) || !q.narrow(stream) {
		return
	}
	tools := restTools(q.view.tools())
	reply(q.w, http.StatusOK, toolListing{Success: true, Stream: &stream, Tools: tools, Count: len(tools)})
}

// groups are the tools by stream.
type groups struct {
	Streams []string              `json:"streams"`
	Groups  map[string][]restTool `json:"groups"`
	Count   int                   `json:"count"` // of streams
}

// streamListing has them twice: as the seed's table has it, and as its example.
type streamListing struct {
	Success bool `json:"success"`
	groups
	Data groups `json:"data"`
}

func (q *restRequest) streams() {
	if !q.allow(http.MethodGet) {
		return
	}
	out := groups{Streams: []string{}, Groups: map[string][]restTool{}}
	for _, stream := range q.g.views.current().streams {
		if q.who.sees(stream) {
			out.Streams = append(out.Streams, stream)
			out.Groups[stream] = []restTool{}
		}
	}
	for _, e := range q.view.tools() {
		if _, grouped := out.Groups[e.stream]; grouped {
			out.Groups[e.stream] = append(out.Groups[e.stream], restToolOf(e))
		}
	}
	out.Count = len(out.Streams)
	reply(q.w, http.StatusOK, streamListing{true, out, out})
}

// oneTool is the answer to GET /api/mcp/tools/NAME.
type oneTool struct {
	Success bool     `json:"success"`
	Tool    restTool `json:"tool"`
}

func (q *restRequest) tool(name string) {
	if !q.allow(http.MethodGet) {
		return
	}
	e, ok := q.view.tool(name)
	if !ok {
		q.noTool(name)
		return
	}
	reply(q.w, http.StatusOK, oneTool{true, restToolOf(e)})
}

func (q *restRequest) noTool(name string) {
	q.fail(http.StatusNotFound, codeNoTool, "工具未找到: "+clip(name), "tool not found: "+clip(name))
}

// body reads the body as one object. False: it was answered.
func (q *restRequest) body(into any, optional bool) bool {
	data, status, err := q.g.readBody(q.w, q.r)
	if err != nil {
		text := bodyProblem(q.who.language, status, err)
		q.fail(status, codeBadRequest, text, text)
		return false
	}
	if optional && len(strings.TrimSpace(string(data))) == 0 {
		return true
	}
	if deep(data) {
		err = errors.New("nested too deeply")
	} else {
		err = decodeOne(strings.NewReader(string(data)), into)
	}
	if err != nil {
		q.fail(http.StatusBadRequest, codeBadRequest, "请求体不是所要的 JSON: "+oneLine(err), "the body is not the JSON that is asked for: "+oneLine(err))
		return false
	}
	return true
}

// restResult is the answer to POST /api/mcp/tools/call.
type restResult struct {
	Success  bool          `json:"success"`
	Content  []sdk.Content `json:"content"`
	IsError  bool          `json:"isError"`
	Metadata restNote      `json:"metadata"`
}

// restNote is what is said of the call itself.
type restNote struct {
	Tool      string `json:"tool"`
	Duration  string `json:"duration"`
	Timestamp int64  `json:"timestamp"` // milliseconds since 1970
}

func (q *restRequest) call(ctx context.Context) {
	if !q.allow(http.MethodPost) {
		return
	}
	var req CallRequest
	if !q.body(&req, false) {
		return
	}
	if req.Name == "" {
		q.fail(http.StatusBadRequest, codeBadRequest, "缺少工具名 name", `the body has no "name" of a tool`)
		return
	}
	e, ok := q.view.tool(req.Name)
	if !ok {
		q.g.auditUnknown(q.who, req.Name)
		q.noTool(req.Name)
		return
	}
	began := time.Now()
	result, invalid, err := q.g.perform(ctx, e, req.Arguments, nil)
	switch {
	case errors.Is(err, errReadOnly):
		q.fail(http.StatusForbidden, codeForbidden, "这个令牌是只读的", "this token is read-only")
	case errors.Is(err, errBusy):
		q.w.Header().Set("Retry-After", "1")
		q.fail(http.StatusTooManyRequests, codeRate, "同时进行的调用太多", "too many calls at the same time")
	case err != nil:
		q.fail(http.StatusInternalServerError, codeFailed, reason(err), reason(err))
	case invalid != "":
		q.fail(http.StatusBadRequest, codeArguments, "参数无效: "+invalid, "invalid arguments: "+invalid)
	default:
		reply(q.w, http.StatusOK, restResult{
			Success: !result.IsError, Content: result.Content, IsError: result.IsError,
			Metadata: restNote{e.name, strconv.FormatInt(time.Since(began).Round(time.Millisecond).Milliseconds(), 10) + "ms", time.Now().UnixMilli()},
		})
	}
}
