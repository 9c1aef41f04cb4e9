package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
	if _, ok := q.view.promptNamed(name); !ok {
		q.fail(http.StatusNotFound, codeNoPrompt, "提示词未找到: "+clip(name), "prompt not found: "+clip(name))
		return
	}
	result, err := q.view.getPrompt(ctx, &sdk.GetPromptRequest{Params: &sdk.GetPromptParams{Name: name, Arguments: req.Arguments}})
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
