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
)

// restError is the body of each error in REST.
type restError struct {
	Success bool        `json:"success"`
	Error   restProblem `json:"error"`
	IsError bool        `json:"isError"`
}

// restProblem is the error member of a REST error.
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

func restToolOf(e *catalog.Entry) restTool { return restTool{e.Name(), e.Description(), e.Schema()} }

func restTools(entries []*catalog.Entry) []restTool {
	out := make([]restTool, len(entries))
	for i, e := range entries {
		out[i] = restToolOf(e)
	}
	return out
}

// restRequest is one REST request on its way.
type restRequest struct {
	*front
	w    http.ResponseWriter
	r    *http.Request
	who  catalog.Caller
	view *catalog.View
}

// fail answers with an error: a message by its id.
func (q *restRequest) fail(status int, code, id string, args ...any) {
	q.failWith(status, code, q.who.Say(id, args...))
}

// failWith answers with an error in words.
func (q *restRequest) failWith(status int, code, message string) {
	reply(q.w, status, restError{Error: restProblem{code, message}, IsError: true})
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
	q.fail(http.StatusMethodNotAllowed, codeMethod, "gateway/http-method")
	return false
}

// restRequests serves everything under /api/mcp that is plain HTTP.
type restRequests struct{ *front }

// serve serves one request. Literal paths win over names; path is escaped and
// without a slash at its end.
func (g restRequests) serve(w http.ResponseWriter, r *http.Request, c catalog.Caller, path string) {
	c.Via = "rest"
	c = c.Until(r.Context())
	ctx := catalog.WithCaller(r.Context(), c)
	v, _ := g.views.Of(c, "")
	q := &restRequest{g.front, w, r.WithContext(ctx), c, v}
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
			q.fail(http.StatusNotFound, codeNotFound, "gateway/path-unknown")
		}
	}
}

// toolListing is the answer to GET /api/mcp/tools.
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
	tools := restTools(q.view.Tools())
	reply(q.w, http.StatusOK, toolListing{Success: true, Tools: tools, Count: len(tools)})
}

// narrow makes the view that of one stream, or answers that there is none.
func (q *restRequest) narrow(stream string) bool {
	v, ok := q.views.Of(q.who, stream)
	if !ok || stream == "" {
		q.fail(http.StatusNotFound, codeNoStream, "gateway/stream-unknown", catalog.Clip(stream))
		return false
	}
	q.view = v
	return true
}

func (q *restRequest) stream(stream string) {
	if !q.allow(http.MethodGet) || !q.narrow(stream) {
		return
	}
	tools := restTools(q.view.Tools())
	reply(q.w, http.StatusOK, toolListing{Success: true, Stream: &stream, Tools: tools, Count: len(tools)})
}

// groups are the tools by stream.
type groups struct {
	Streams []string              `json:"streams"`
	Groups  map[string][]restTool `json:"groups"`
	Count   int                   `json:"count"` // of streams
}

// streamListing has the groups twice: clients read either.
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
	for _, stream := range q.views.Streams(q.who) {
		out.Streams = append(out.Streams, stream)
		out.Groups[stream] = []restTool{}
	}
	for _, e := range q.view.Tools() {
		if _, grouped := out.Groups[e.Stream()]; grouped {
			out.Groups[e.Stream()] = append(out.Groups[e.Stream()], restToolOf(e))
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
	e, ok := q.view.Tool(name)
	if !ok {
		q.noTool(name)
		return
	}
	reply(q.w, http.StatusOK, oneTool{true, restToolOf(e)})
}

func (q *restRequest) noTool(name string) {
	q.fail(http.StatusNotFound, codeNoTool, "gateway/tool-unknown", catalog.Clip(name))
}

// body reads the body as one object. False: it was answered.
func (q *restRequest) body(into any, optional bool) bool {
	data, status, err := q.readBody(q.w, q.r)
	if err != nil {
		text := bodyProblem(q.who, status, err)
		q.failWith(status, codeBadRequest, text)
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
		q.fail(http.StatusBadRequest, codeBadRequest, "gateway/body-wrong", catalog.OneLine(err))
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

// restNote describes the call itself.
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
		q.fail(http.StatusBadRequest, codeBadRequest, "gateway/tool-unnamed")
		return
	}
	e, ok := q.view.Tool(req.Name)
	if !ok {
		q.runner.RefuseUnknown(q.who, req.Name)
		q.noTool(req.Name)
		return
	}
	began := time.Now()
	result, err := q.runner.Run(ctx, e, req.Arguments, nil)
	if err != nil {
		status, code, message := refusal(q.who, err)
		if status == http.StatusTooManyRequests {
			q.w.Header().Set("Retry-After", "1")
		}
		q.failWith(status, code, message)
		return
	}
	reply(q.w, http.StatusOK, restResult{
		Success: !result.IsError, Content: result.Content, IsError: result.IsError,
		Metadata: restNote{e.Name(), strconv.FormatInt(time.Since(began).Round(time.Millisecond).Milliseconds(), 10) + "ms", time.Now().UnixMilli()},
	})
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
