package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
	switch rest {
	case "/tools":
		q.tools()
	case "/tools/streams":
		q.streams()
	case "/tools/call":
		q.call(ctx)
	case "/resources":
		q.resources()
	case "/prompts":
		q.prompts()
	default:
		if stream, ok := name("/tools/stream/"); ok {
			q.stream(stream)
		} else if tool, ok := name("/tools/"); ok {
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
	stream := q.r.URL.Query().Get("stream")
	if stream != "" && !q.narrow(stream) {
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
	if status == http.StatusRequestEntityTooLarge {
		q.fail(status, codeBadRequest, "请求体太大", "the body is too large")
		return false
	}
	if err == nil && optional && len(strings.TrimSpace(string(data))) == 0 {
		return true
	}
	if err == nil && !deep(data) {
		err = decodeOne(strings.NewReader(string(data)), into)
	} else if err == nil {
		err = errors.New("nested too deeply")
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
	if stream := q.r.URL.Query().Get("stream"); stream != "" && !q.narrow(stream) {
		return
	}
	if req.Name == "" {
		q.fail(http.StatusBadRequest, codeBadRequest, "缺少工具名 name", `the body has no "name" of a tool`)
		return
	}
	e, ok := q.view.tool(req.Name)
	if !ok {
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
			Metadata: restNote{e.name, time.Since(began).Round(time.Millisecond).String(), time.Now().UnixMilli()},
		})
	}
}

// resourceListing is the answer to GET /api/mcp/resources.
type resourceListing struct {
	Success   bool            `json:"success"`
	Resources []*sdk.Resource `json:"resources"`
	Count     int             `json:"count"`
}

func (q *restRequest) resources() {
	if !q.allow(http.MethodGet) {
		return
	}
	out := resourceListing{Success: true, Resources: q.view.resources()}
	out.Count = len(out.Resources)
	reply(q.w, http.StatusOK, out)
}

// oneResource is the answer to GET /api/mcp/resources/URI.
type oneResource struct {
	Success  bool                  `json:"success"`
	Resource *sdk.ResourceContents `json:"resource"`
}

func (q *restRequest) resource(ctx context.Context, uri string) {
	if !q.allow(http.MethodGet) {
		return
	}
	contents, err := q.view.readURI(ctx, uri)
	switch e, _ := errors.AsType[*jsonrpc.Error](err); {
	case e != nil && e.Code == jsonrpc.CodeInvalidParams, err == nil && len(contents) == 0:
		q.fail(http.StatusNotFound, codeNoResource, "资源未找到: "+clip(uri), "resource not found: "+clip(uri))
	case err != nil:
		q.fail(http.StatusInternalServerError, codeFailed, reason(err), reason(err))
	default:
		reply(q.w, http.StatusOK, oneResource{true, contents[0]})
	}
}

// promptListing is the answer to GET /api/mcp/prompts.
type promptListing struct {
	Success bool          `json:"success"`
	Prompts []*sdk.Prompt `json:"prompts"`
	Count   int           `json:"count"`
}

func (q *restRequest) prompts() {
	if !q.allow(http.MethodGet) {
		return
	}
	out := promptListing{Success: true, Prompts: q.view.prompts()}
	out.Count = len(out.Prompts)
	reply(q.w, http.StatusOK, out)
}

// promptRequest is the body of POST /api/mcp/prompts/NAME.
type promptRequest struct {
	Arguments map[string]string `json:"arguments"`
}

// onePrompt is the answer to it.
type onePrompt struct {
	Success bool       `json:"success"`
	Prompt  promptText `json:"prompt"`
}

// promptText is a prompt that was filled in.
type promptText struct {
	Description string               `json:"description"`
	Messages    []*sdk.PromptMessage `json:"messages"`
}

func (q *restRequest) prompt(ctx context.Context, name string) {
	if !q.allow(http.MethodPost) {
		return
	}
	var req promptRequest
	if !q.body(&req, true) {
		return
	}
	p, ok := q.view.promptNamed(name)
	if !ok {
		q.fail(http.StatusNotFound, codeNoPrompt, "提示词未找到: "+clip(name), "prompt not found: "+clip(name))
		return
	}
	result, err := p.get(ctx, &sdk.GetPromptRequest{Params: &sdk.GetPromptParams{Name: name, Arguments: req.Arguments}})
	switch e, _ := errors.AsType[*jsonrpc.Error](err); {
	case e != nil && e.Code == jsonrpc.CodeInvalidParams:
		q.fail(http.StatusBadRequest, codeArguments, e.Message, e.Message)
	case err != nil:
		q.fail(http.StatusInternalServerError, codeFailed, reason(err), reason(err))
	case result == nil:
		q.fail(http.StatusInternalServerError, codeFailed, "没有结果", "there is no result")
	default:
		reply(q.w, http.StatusOK, onePrompt{true, promptText{result.Description, result.Messages}})
	}
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

// health is open to everybody; who may not see more sees no names and no numbers.
func (g *Gateway) health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		g.problem(w, r, "", http.StatusMethodNotAllowed, codeMethod, say(languageOf(r), "不支持这个方法", "this method is not served"))
		return
	}
	out := healthReport{
		Success: true, Status: "healthy", Streams: []string{}, Protocol: version2024, Supported: sdk.SupportedProtocolVersions(),
		Version: "1.0.0", Server: g.options.Version, Uptime: time.Since(g.began).Round(time.Millisecond).Seconds(),
	}
	if g.options.Disabled {
		out.Success, out.Status = false, "disabled"
		reply(w, http.StatusServiceUnavailable, out)
		return
	}
	if c, denied := g.guard.admit(r); denied == nil {
		v, _ := g.views.of(c, "")
		out.Tools, out.Resources, out.Prompts = len(v.tools()), len(v.resources()), len(v.prompts())
		for _, stream := range g.views.current().streams {
			if c.sees(stream) {
				out.Streams = append(out.Streams, stream)
			}
		}
	}
	reply(w, http.StatusOK, out)
}

// contextLanguage is the language of the caller of ctx.
func contextLanguage(ctx context.Context) string { return callerFrom(ctx).language }
