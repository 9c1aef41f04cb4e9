package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// The codes of REST errors, beside [catalog.CodeFailed].
const (
	codeNoTool       = "TOOL_NOT_FOUND"
	codeArguments    = "INVALID_ARGUMENTS"
	codeNoStream     = "STREAM_NOT_FOUND"
	codeNoResource   = "RESOURCE_NOT_FOUND"
	codeNoPrompt     = "PROMPT_NOT_FOUND"
	codeBadRequest   = "BAD_REQUEST"
	codeUnauthorized = "UNAUTHORIZED"
	codeForbidden    = "FORBIDDEN"
	codeRate         = "RATE_LIMITED"
	codeMethod       = "METHOD_NOT_ALLOWED"
	codeNotFound     = "NOT_FOUND"
	codeDisabled     = "MCP_DISABLED"
	codeUnread       = "ACCOUNTS_UNREAD"
)

type restError struct {
	Success bool        `json:"success"`
	Error   restProblem `json:"error"`
	IsError bool        `json:"isError"`
}

type restProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// restAnswer is the body of each answer that lists or shows something: what it is
// not about is left out.
type restAnswer struct {
	Success   bool                  `json:"success"`
	Stream    *string               `json:"stream,omitempty"`
	Tool      *restTool             `json:"tool,omitempty"`
	Tools     []restTool            `json:"tools,omitzero"`
	Resource  *sdk.ResourceContents `json:"resource,omitempty"`
	Resources []*sdk.Resource       `json:"resources,omitzero"`
	Prompt    *restPrompt           `json:"prompt,omitempty"`
	Prompts   []*sdk.Prompt         `json:"prompts,omitzero"`
	Count     *int                  `json:"count,omitempty"` // of a list
}

type restTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

type restPrompt struct {
	Description string               `json:"description"`
	Messages    []*sdk.PromptMessage `json:"messages"`
}

func restToolOf(e *catalog.Entry) restTool { return restTool{e.Name(), e.Description(), e.Schema()} }

func restTools(entries []*catalog.Entry) []restTool {
	out := make([]restTool, len(entries))
	for i, e := range entries {
		out[i] = restToolOf(e)
	}
	return out
}

type restRequest struct {
	*front
	w    http.ResponseWriter
	r    *http.Request
	who  catalog.Caller
	view *catalog.View
}

// restRoutes returns the routes of REST, each below /api/mcp: one that ends in "/" goes on with a
// name. Literal paths win over names.
func restRoutes() []restRoute {
	return []restRoute{
		{"/tools/stream/", http.MethodGet, (*restRequest).stream},
		{"/tools/streams", http.MethodGet, (*restRequest).streams},
		{"/tools", http.MethodGet, (*restRequest).tools},
		{"/tools/call", http.MethodPost, (*restRequest).call},
		{"/resources", http.MethodGet, (*restRequest).resources},
		{"/prompts", http.MethodGet, (*restRequest).prompts},
		{"/tools/", http.MethodGet, (*restRequest).tool},
		{"/resources/", http.MethodGet, (*restRequest).resource},
		{"/prompts/", http.MethodPost, (*restRequest).prompt},
	}
}

// restRoute is one route; serve gets the name in the path.
type restRoute struct {
	path, method string
	serve        func(q *restRequest, name string)
}

// serveREST serves everything under /api/mcp that is plain HTTP. path is escaped and
// without a slash at its end.
func (f *front) serveREST(w http.ResponseWriter, r *http.Request, c catalog.Caller, path string) {
	c.Via = "rest"
	c = c.Until(r.Context())
	v, _ := f.views.Of(c, "")
	q := &restRequest{f, w, r.WithContext(catalog.WithCaller(r.Context(), c)), c, v}
	rest := strings.TrimPrefix(path, pathAPI)
	ofStreams := rest == "/tools/streams" || strings.HasPrefix(rest, "/tools/stream/")
	if stream := r.URL.Query().Get("stream"); stream != "" && !ofStreams && !q.narrow(stream) {
		return
	}
	for _, route := range restRoutes() {
		escaped, fits := strings.CutPrefix(rest, route.path)
		if !fits || strings.HasSuffix(route.path, "/") == (escaped == "") {
			continue
		}
		name, err := url.PathUnescape(escaped) // once, or a URI would lose its own escapes
		if err != nil {
			continue
		}
		if r.Method != route.method && (r.Method != http.MethodHead || route.method != http.MethodGet) {
			w.Header().Set("Allow", route.method)
			q.fail(http.StatusMethodNotAllowed, codeMethod, "gateway/http-method")
			return
		}
		route.serve(q, name)
		return
	}
	q.fail(http.StatusNotFound, codeNotFound, "gateway/path-unknown")
}

func (q *restRequest) fail(status int, code, id string, args ...any) {
	q.failWith(status, code, q.who.Say(id, args...))
}

func (q *restRequest) failWith(status int, code, message string) {
	reply(q.w, status, restError{Error: restProblem{code, message}, IsError: true})
}

// narrow makes the view that of one stream, or answers that there is none.
func (q *restRequest) narrow(stream string) bool {
	v, ok := q.views.Of(q.who, stream)
	if !ok {
		q.fail(http.StatusNotFound, codeNoStream, "gateway/stream-unknown", catalog.Clip(stream))
		return false
	}
	q.view = v
	return true
}

func (q *restRequest) tools(string) {
	tools := restTools(q.view.Tools())
	reply(q.w, http.StatusOK, restAnswer{Success: true, Tools: tools, Count: new(len(tools))})
}

func (q *restRequest) stream(stream string) {
	if q.narrow(stream) {
		tools := restTools(q.view.Tools())
		reply(q.w, http.StatusOK, restAnswer{Success: true, Stream: &stream, Tools: tools, Count: new(len(tools))})
	}
}

// restGroups are the tools by stream.
type restGroups struct {
	Streams []string              `json:"streams"`
	Groups  map[string][]restTool `json:"groups"`
	Count   int                   `json:"count"` // of streams
}

// streams answers with the groups twice: clients read either.
func (q *restRequest) streams(string) {
	streams := q.views.Streams(q.who)
	out := restGroups{append([]string{}, streams...), map[string][]restTool{}, len(streams)}
	for _, stream := range streams {
		out.Groups[stream] = []restTool{}
	}
	for _, e := range q.view.Tools() {
		if _, grouped := out.Groups[e.Stream()]; grouped {
			out.Groups[e.Stream()] = append(out.Groups[e.Stream()], restToolOf(e))
		}
	}
	reply(q.w, http.StatusOK, struct {
		Success bool `json:"success"`
		restGroups
		Data restGroups `json:"data"`
	}{true, out, out})
}

func (q *restRequest) tool(name string) {
	e, ok := q.view.Tool(name)
	if !ok {
		q.fail(http.StatusNotFound, codeNoTool, "gateway/tool-unknown", catalog.Clip(name))
		return
	}
	reply(q.w, http.StatusOK, restAnswer{Success: true, Tool: new(restToolOf(e))})
}

func (q *restRequest) resources(string) {
	list := q.view.Resources()
	reply(q.w, http.StatusOK, restAnswer{Success: true, Resources: list, Count: new(len(list))})
}

func (q *restRequest) resource(uri string) {
	contents, err := q.view.ReadURI(q.r.Context(), uri)
	switch e, _ := errors.AsType[*jsonrpc.Error](err); {
	case e != nil && e.Code == jsonrpc.CodeInvalidParams, err == nil && len(contents) == 0:
		q.fail(http.StatusNotFound, codeNoResource, "gateway/resource-unknown", catalog.Clip(uri))
	case err != nil:
		q.failWith(http.StatusInternalServerError, catalog.CodeFailed, catalog.Reason(err))
	default:
		reply(q.w, http.StatusOK, restAnswer{Success: true, Resource: contents[0]})
	}
}

func (q *restRequest) prompts(string) {
	list := q.view.Prompts()
	reply(q.w, http.StatusOK, restAnswer{Success: true, Prompts: list, Count: new(len(list))})
}

// promptRequest is the body of POST /api/mcp/prompts/NAME.
type promptRequest struct {
	Arguments map[string]string `json:"arguments"`
}

func (q *restRequest) prompt(name string) {
	var req promptRequest
	if !q.body(&req, true) {
		return
	}
	result, known, err := q.view.Prompt(q.r.Context(), name, req.Arguments)
	switch e, _ := errors.AsType[*jsonrpc.Error](err); {
	case !known:
		q.fail(http.StatusNotFound, codeNoPrompt, "gateway/prompt-unknown", catalog.Clip(name))
	case e != nil && e.Code == jsonrpc.CodeInvalidParams:
		q.failWith(http.StatusBadRequest, codeArguments, e.Message)
	case err != nil:
		q.failWith(http.StatusInternalServerError, catalog.CodeFailed, catalog.Reason(err))
	case result == nil:
		q.fail(http.StatusInternalServerError, catalog.CodeFailed, "gateway/no-result")
	default:
		reply(q.w, http.StatusOK, restAnswer{Success: true, Prompt: &restPrompt{result.Description, result.Messages}})
	}
}

// body reads the body as one object. False: it was answered.
func (q *restRequest) body(into any, optional bool) bool {
	data, status, problem := q.readBody(q.w, q.r, q.who)
	if problem != "" {
		q.failWith(status, codeBadRequest, problem)
		return false
	}
	if optional && len(bytes.TrimSpace(data)) == 0 {
		return true
	}
	err := errors.New("nested too deeply")
	if !deep(data) {
		err = decodeOne(bytes.NewReader(data), into)
	}
	if err != nil {
		q.fail(http.StatusBadRequest, codeBadRequest, "gateway/body-wrong", catalog.OneLine(err))
	}
	return err == nil
}

// restResult is the answer to POST /api/mcp/tools/call.
type restResult struct {
	Success  bool          `json:"success"`
	Content  []sdk.Content `json:"content"`
	IsError  bool          `json:"isError"`
	Metadata struct {
		Tool      string `json:"tool"`
		Duration  string `json:"duration"`
		Timestamp int64  `json:"timestamp"` // milliseconds since 1970
	} `json:"metadata"`
}

func (q *restRequest) call(string) {
	var req CallRequest
	if !q.body(&req, false) {
		return
	}
	if req.Name == "" {
		q.fail(http.StatusBadRequest, codeBadRequest, "gateway/tool-unnamed")
		return
	}
	e, ok := q.view.Tool(req.Name)
	if !ok {
		q.runner.RefuseUnknown(q.who, req.Name)
		q.fail(http.StatusNotFound, codeNoTool, "gateway/tool-unknown", catalog.Clip(req.Name))
		return
	}
	began := time.Now()
	result, err := q.runner.Run(q.r.Context(), e, req.Arguments, nil)
	if err != nil {
		status, code, message := refusal(q.who, err)
		if status == http.StatusTooManyRequests {
			q.w.Header().Set("Retry-After", "1")
		}
		q.failWith(status, code, message)
		return
	}
	out := restResult{Success: !result.IsError, Content: result.Content, IsError: result.IsError}
	out.Metadata.Tool, out.Metadata.Timestamp = e.Name(), time.Now().UnixMilli()
	out.Metadata.Duration = strconv.FormatInt(time.Since(began).Round(time.Millisecond).Milliseconds(), 10) + "ms"
	reply(q.w, http.StatusOK, out)
}

// refusal returns the error of a tool that was not run, for REST and for messages
// without JSON-RPC.
func refusal(c catalog.Caller, err error) (status int, code, message string) {
	bad, invalid := errors.AsType[*catalog.ArgumentError](err)
	switch {
	case invalid:
		return http.StatusBadRequest, codeArguments, c.Say("gateway/arguments-wrong", bad.Why)
	case errors.Is(err, catalog.ErrReadOnly):
		return http.StatusForbidden, codeForbidden, c.Say("gateway/read-only")
	case errors.Is(err, catalog.ErrBusy):
		return http.StatusTooManyRequests, codeRate, c.Say("gateway/calls-at-once")
	}
	return http.StatusInternalServerError, catalog.CodeFailed, catalog.Reason(err)
}
