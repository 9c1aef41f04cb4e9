package offer

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/prompts"
)

// streamPrompts is the stream of the project's prompt templates.
const streamPrompts = "prompts"

// promptList offers the project's prompt templates.
type promptList struct {
	set       *prompts.Set
	assistant string
	zone      *time.Location
	devices   Devices
}

// add adds the templates to p.
func (l promptList) add(p *catalog.Part) {
	p.AddStreams(streamPrompts)
	complete := map[string]catalog.Values{
		"language":       func(func(string) bool) []string { return []string{"zh", "en"} },
		"assistant_name": func(func(string) bool) []string { return []string{l.assistant} },
		"device_name":    l.deviceNames,
	}
	for _, name := range l.set.Names() {
		p.AddPrompt(streamPrompts, &sdk.Prompt{
			Name: name, Description: catalog.Both("gateway/about-prompt", name),
			Arguments: []*sdk.PromptArgument{
				{Name: "language", Description: catalog.Both("gateway/about-language")},
				{Name: "device_name", Description: catalog.Both("gateway/about-device-name")},
				{Name: "assistant_name", Description: catalog.Both("gateway/about-assistant-name")},
			},
		}, l.render(name), complete)
	}
}

// deviceNames returns the names of the devices that are connected.
func (l promptList) deviceNames(shown func(string) bool) []string {
	if l.devices == nil {
		return nil
	}
	var out []string
	for _, d := range l.devices.List() {
		if d.Name != "" && shown(d.ID) {
			out = append(out, d.Name)
		}
	}
	return out
}

// render fills in one prompt.
func (l promptList) render(name string) sdk.PromptHandler {
	return func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		invalid := func(id string, args ...any) error {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: catalog.CallerFrom(ctx).Say(id, args...)}
		}
		data := prompts.Data{AssistantName: l.assistant, Now: time.Now().In(l.zone)}
		language := catalog.Language(ctx)
		for argument, value := range req.Params.Arguments {
			switch argument {
			case "language":
				if value != "zh" && value != "en" {
					return nil, invalid("gateway/language-wrong")
				}
				language = value
			case "device_name":
				data.DeviceName = value
			case "assistant_name":
				data.AssistantName = value
			default:
				return nil, invalid("gateway/argument-unknown", catalog.Clip(argument))
			}
		}
		text, err := l.set.Render(name, language, data)
		if err != nil {
			return nil, err
		}
		return &sdk.GetPromptResult{
			Description: req.Params.Name,
			Messages:    []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}},
		}, nil
	}
}
