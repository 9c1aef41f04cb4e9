package conformance

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// texts returns the reader of a resource of one text.
func texts(mime, content string) sdk.ResourceHandler {
	return func(_ context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: q.Params.URI, MIMEType: mime, Text: content}}}, nil
	}
}

// registerResources adds the resources that scenarios read.
func registerResources(r *catalog.Registry) {
	r.AddResource("", &sdk.Resource{URI: "test://static-text", Name: "text", MIMEType: "text/plain"}, texts("text/plain", "This is the content of the static text resource."))
	r.AddResource("", &sdk.Resource{URI: watched, Name: "watched", MIMEType: "text/plain"}, texts("text/plain", "it changes"))
	r.AddResource("", &sdk.Resource{URI: "test://static-binary", Name: "binary", MIMEType: "image/png"}, func(_ context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: q.Params.URI, MIMEType: "image/png", Blob: decode(pixel)}}}, nil
	})
	r.AddResourceTemplate("", &sdk.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", MIMEType: "application/json"},
		func(ctx context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(q.Params.URI, "test://template/"), "/data")
			return texts("application/json", fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id))(ctx, q)
		})
}

// registerPrompts adds the prompts that scenarios get.
func registerPrompts(r *catalog.Registry) {
	r.AddPrompt("", &sdk.Prompt{Name: "test_simple_prompt", Description: described}, say("This is a simple prompt for testing."))
	r.AddPrompt("", &sdk.Prompt{
		Name: "test_prompt_with_arguments", Description: described, Arguments: []*sdk.PromptArgument{{Name: "arg1", Required: true}, {Name: "arg2", Required: true}},
	}, func(_ context.Context, q *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		a := q.Params.Arguments
		return messages(&sdk.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}), nil
	})
	r.AddPrompt("", &sdk.Prompt{
		Name: "test_prompt_with_embedded_resource", Description: described, Arguments: []*sdk.PromptArgument{{Name: "resourceUri", Required: true}},
	}, func(_ context.Context, q *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return messages(embedded(q.Params.Arguments["resourceUri"]), &sdk.TextContent{Text: "Look at the resource above."}), nil
	})
	r.AddPrompt("", &sdk.Prompt{Name: "test_prompt_with_image", Description: described}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return messages(image(), &sdk.TextContent{Text: "Look at the picture above."}), nil
	})
	r.AddPrompt("", &sdk.Prompt{Name: "test_input_required_result_prompt", Description: described}, func(_ context.Context, q *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		if told := accepted(q.Params.InputResponses, "user_context"); told != nil {
			return messages(&sdk.TextContent{Text: fmt.Sprint("Context: ", told["context"])}), nil
		}
		return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": form("what is it about?", "context", "string")}}, nil
	})
}
