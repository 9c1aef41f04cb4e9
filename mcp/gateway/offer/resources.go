package offer

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/prompts"
)

// The resources of this server. A device's are below uriDevices/ID, the id as in
// its stream.
const (
	uriDevices = "xiaozhi://devices"
	uriConfig  = "xiaozhi://config"
	uriLog     = "xiaozhi://log"
)

const mimeJSON = "application/json"

// shortID returns the id of a device as it stands in streams and URIs.
func shortID(id string) string { return strings.TrimPrefix(catalog.StreamOf(id), "device-") }

func deviceURI(id, about string) string { return uriDevices + "/" + shortID(id) + "/" + about }

// addJSON adds a resource that holds the JSON of a value, which of makes when it is read.
func addJSON(p *catalog.Part, stream, uri, name, description string, of func(ctx context.Context) (any, error)) {
	p.AddResource(stream, &sdk.Resource{URI: uri, Name: name, Description: description, MIMEType: mimeJSON}, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		value, err := of(ctx)
		if err != nil {
			return nil, err
		}
		data, err := rawjson.Marshal(value)
		if err != nil {
			return nil, err
		}
		return textResource(uri, mimeJSON, string(data)), nil
	})
}

func textResource(uri, mime, text string) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}
}

func (o Options) addServer(p *catalog.Part) {
	if o.Config != nil {
		addJSON(p, "system", uriConfig, "config", catalog.Both("gateway/about-config"), func(context.Context) (any, error) {
			return json.RawMessage(o.Config()), nil
		})
	}
	if o.LogTail != nil {
		def := &sdk.Resource{URI: uriLog, Name: "log", Description: catalog.Both("gateway/about-log"), MIMEType: "text/plain"}
		p.AddResource("system", def, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return textResource(uriLog, "text/plain", o.LogTail()), nil
		})
	}
}

// addPrompts adds the project's prompt templates, in a stream of their own.
func (o Options) addPrompts(p *catalog.Part) {
	const stream = "prompts"
	p.AddStreams(stream)
	complete := map[string]catalog.Values{
		"language":       func(func(string) bool) []string { return o.Prompts.Languages() },
		"assistant_name": func(func(string) bool) []string { return []string{o.Assistant()} },
		"device_name": func(shown func(string) bool) []string {
			if o.Devices == nil {
				return nil
			}
			var out []string
			for _, d := range o.Devices.List() {
				if d.Name != "" && shown(d.ID) {
					out = append(out, d.Name)
				}
			}
			return out
		},
	}
	for _, name := range o.Prompts.Names() {
		p.AddPrompt(stream, &sdk.Prompt{
			Name: name, Description: catalog.Both("gateway/about-prompt", name),
			Arguments: []*sdk.PromptArgument{
				{Name: "language", Description: catalog.Both("gateway/about-language")},
				{Name: "device_name", Description: catalog.Both("gateway/about-device-name")},
				{Name: "assistant_name", Description: catalog.Both("gateway/about-assistant-name")},
			},
		}, o.prompt, complete)
	}
}

func (o Options) prompt(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	invalid := func(id string, args ...any) error {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: catalog.CallerFrom(ctx).Say(id, args...)}
	}
	data := prompts.Data{AssistantName: o.Assistant(), Now: time.Now().In(o.Zone())}
	language := catalog.CallerFrom(ctx).Language
	for argument, value := range req.Params.Arguments {
		switch argument {
		case "language":
			lang, err := text.ParseLang(value)
			if err != nil {
				return nil, invalid("gateway/language-wrong")
			}
			language, data.Language = string(lang), string(lang)
		case "device_name":
			data.DeviceName = value
		case "assistant_name":
			data.AssistantName = value
		default:
			return nil, invalid("gateway/argument-unknown", catalog.Clip(argument))
		}
	}
	rendered, err := o.Prompts.Render(req.Params.Name, language, data)
	if err != nil {
		return nil, err
	}
	return &sdk.GetPromptResult{
		Description: req.Params.Name,
		Messages:    []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: rendered}}},
	}, nil
}
