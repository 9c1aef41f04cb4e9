package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
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
	out := resourceListing{Success: true, Resources: q.view.Resources()}
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
	contents, err := q.view.ReadURI(ctx, uri)
	switch e, _ := errors.AsType[*jsonrpc.Error](err); {
	case e != nil && e.Code == jsonrpc.CodeInvalidParams, err == nil && len(contents) == 0:
		q.fail(http.StatusNotFound, codeNoResource, "gateway/resource-unknown", catalog.Clip(uri))
	case err != nil:
		q.failWith(http.StatusInternalServerError, catalog.CodeFailed, catalog.Reason(err))
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
	out := promptListing{Success: true, Prompts: q.view.Prompts()}
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
	result, known, err := q.view.Prompt(ctx, name, req.Arguments)
	if !known {
		q.fail(http.StatusNotFound, codeNoPrompt, "gateway/prompt-unknown", catalog.Clip(name))
		return
	}
	switch e, _ := errors.AsType[*jsonrpc.Error](err); {
	case e != nil && e.Code == jsonrpc.CodeInvalidParams:
		q.failWith(http.StatusBadRequest, codeArguments, e.Message)
	case err != nil:
		q.failWith(http.StatusInternalServerError, catalog.CodeFailed, catalog.Reason(err))
	case result == nil:
		q.fail(http.StatusInternalServerError, catalog.CodeFailed, "gateway/no-result")
	default:
		reply(q.w, http.StatusOK, onePrompt{true, promptText{result.Description, result.Messages}})
	}
}
