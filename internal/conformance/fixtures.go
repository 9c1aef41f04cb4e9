//lint:file-ignore SA1019 the suite tests sampling and logging, which the newest revision deprecates

// Package conformance holds what MCP programs of others are run against. For the
// official conformance suite these are the tools, resources and prompts that its
// scenarios call by name, in the registry of a real gateway, and a client that is
// driven by the name of a scenario. `make conformance` runs them all.
package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/gateway/catalog"
)

// A red pixel as PNG, and a WAV file of one sample.
const (
	pixel  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
	sample = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA=="
)

const described = "a prompt of the conformance suite"

// watched is the resource that changes by itself.
const watched = "test://watched-resource"

// Register adds everything that the scenarios for servers ask for by name. The
// watched resource changes until ctx ends; the function that is returned waits
// for that.
func Register(ctx context.Context, g *gateway.Gateway) (wait func(), err error) {
	r := g.Registry()
	var errs []error
	for _, t := range slices.Concat(plainTools(), talkingTools(), changingTools(r), waitingTools(), roundTools()) {
		if t.Schema == nil {
			t.Schema = json.RawMessage(`{"type":"object"}`)
		}
		if t.Description == "" {
			t.Description = "a tool of the conformance suite"
		}
		errs = append(errs, r.Add(t))
	}
	registerResources(r)
	registerPrompts(r)
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				g.Updated(ctx, watched)
			}
		}
	})
	return wg.Wait, errors.Join(errs...)
}

func decode(text string) []byte {
	data, _ := base64.StdEncoding.DecodeString(text) // one of the constants above
	return data
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

func image() sdk.Content { return &sdk.ImageContent{MIMEType: "image/png", Data: decode(pixel)} }

func embedded(uri string) sdk.Content {
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "a resource within"}}
}

func fixed(name string, content ...sdk.Content) catalog.Tool {
	return catalog.Tool{Name: name, Description: "returns the same each time", Handle: func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: content}, nil
	}}
}

// schema2020 uses what JSON Schema 2020-12 has brought.
const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
	`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},` +
	`"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
	`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},` +
	`"additionalProperties":false}`

func plainTools() []catalog.Tool {
	odd := fixed("json_schema_2020_12_tool", &sdk.TextContent{Text: "called"})
	odd.Schema = json.RawMessage(schema2020)
	header := fixed("test_x_mcp_header", &sdk.TextContent{Text: "called"})
	header.Schema = json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`)
	return []catalog.Tool{
		fixed("test_simple_text", &sdk.TextContent{Text: "This is a simple text response for testing."}),
		fixed("test_image_content", image()),
		fixed("test_audio_content", &sdk.AudioContent{MIMEType: "audio/wav", Data: decode(sample)}),
		fixed("test_embedded_resource", embedded("test://embedded-resource")),
		fixed("test_multiple_content_types", &sdk.TextContent{Text: "a text"}, image(), embedded("test://mixed-content-resource")),
		fixed("test_streaming_elicitation", &sdk.TextContent{Text: "nothing was asked"}),
		odd, header,
		{Name: "test_error_handling", Run: func(context.Context, map[string]any) (any, error) {
			return nil, errors.New("this tool always fails")
		}},
	}
}

func talkingTools() []catalog.Tool {
	return []catalog.Tool{
		{Name: "test_tool_with_logging", Handle: logs("the tool begins", "the tool works", "the tool ends")},
		{Name: "test_logging_tool", Handle: logs("the tool runs")},
		{Name: "test_tool_with_progress", Handle: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			for _, done := range []float64{0, 50, 100} {
				progress(ctx, r, done, 100)
				pause(ctx)
			}
			return text(fmt.Sprint(r.Params.GetProgressToken())), nil
		}},
		{
			Name: "test_sampling", Schema: json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`),
			Handle: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var arguments struct{ Prompt string }
				if err := json.Unmarshal(r.Params.Arguments, &arguments); err != nil {
					return nil, err
				}
				answer, err := r.Session.CreateMessage(ctx, sample1(arguments.Prompt))
				if err != nil {
					return nil, err
				}
				said, _ := answer.Content.(*sdk.TextContent)
				return text("LLM response: " + said.Text), nil
			},
		},
		{Name: "test_elicitation", Handle: elicit(`{"type":"object","properties":{"username":{"type":"string"},"email":{"type":"string"}},"required":["username","email"]}`)},
		{Name: "test_elicitation_sep1034_defaults", Handle: elicit(`{"type":"object","properties":{` +
			`"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},` +
			`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)},
		{Name: "test_elicitation_sep1330_enums", Handle: elicit(`{"type":"object","properties":{` +
			`"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
			`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
			`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
			`"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},` +
			`"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`)},
		{Name: "test_reconnection", Handle: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if r.Extra != nil && r.Extra.CloseSSEStream != nil {
				r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
			}
			pause(ctx)
			return text("still here"), nil
		}},
	}
}

func logs(texts ...string) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, text := range texts {
			_ = r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: text})
			pause(ctx)
		}
		return text("logged"), nil
	}
}

// progress tells a client that asked for it how far a call is.
func progress(ctx context.Context, r *sdk.CallToolRequest, done, total float64) {
	if token := r.Params.GetProgressToken(); token != nil {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: total})
	}
}

// pause lets the client take in what was sent.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(50 * time.Millisecond):
	}
}

func elicit(schema string) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "please tell", RequestedSchema: json.RawMessage(schema)})
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(answer.Content)
		return text("action " + answer.Action + ", content " + string(content)), err
	}
}

func changingTools(r *catalog.Registry) []catalog.Tool {
	var count atomic.Int64
	number := func() string { return "number " + strconv.FormatInt(count.Add(1), 10) } // what stays as it is, is no change
	return []catalog.Tool{
		{Name: "test_trigger_tool_change", Handle: func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			t := fixed("test_passing_tool")
			t.Description = number()
			return text("changed"), r.Add(t)
		}},
		{Name: "test_trigger_prompt_change", Handle: func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			r.AddPrompt("", &sdk.Prompt{Name: "test_passing_prompt", Description: number()}, say("hello"))
			return text("changed"), nil
		}},
		{Name: "test_trigger_resource_change", Handle: func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			r.AddResource("", &sdk.Resource{URI: "test://passing", Name: "passing", Description: number(), MIMEType: "text/plain"}, texts("text/plain", "hello"))
			return text("changed"), nil
		}},
	}
}

// waitingTools show that a call can be given up: one waits for that, the other
// tells how often it came.
func waitingTools() []catalog.Tool {
	var count atomic.Int64
	return []catalog.Tool{
		{Name: "test_wait", Handle: func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			progress(ctx, r, 1, 2)
			<-ctx.Done()
			count.Add(1)
			return nil, ctx.Err()
		}},
		{Name: "test_cancelled_waits", Handle: func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text(strconv.FormatInt(count.Load(), 10)), nil
		}},
	}
}

func say(s string) sdk.PromptHandler {
	return func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return messages(&sdk.TextContent{Text: s}), nil
	}
}

func messages(contents ...sdk.Content) *sdk.GetPromptResult {
	r := &sdk.GetPromptResult{Description: "a prompt for testing"}
	for _, c := range contents {
		r.Messages = append(r.Messages, &sdk.PromptMessage{Role: "user", Content: c})
	}
	return r
}

func texts(mime, content string) sdk.ResourceHandler {
	return func(_ context.Context, q *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: q.Params.URI, MIMEType: mime, Text: content}}}, nil
	}
}

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
