package gateway

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/prompts"
)

// streamPrompts is the stream of the project's prompt templates.
const streamPrompts = "prompts"

// addPrompts adds the project's prompt templates.
func (g *Gateway) addPrompts(p *part) {
	set := g.options.Prompts
	if set == nil {
		return
	}
	p.streams = append(p.streams, streamPrompts)
	complete := map[string]values{
		"language":       func(func(string) bool) []string { return []string{"zh", "en"} },
		"assistant_name": func(func(string) bool) []string { return []string{g.options.Assistant} },
		"device_name":    g.deviceNames,
	}
	for _, name := range set.Names() {
		p.prompts = append(p.prompts, &prompt{stream: streamPrompts, complete: complete, get: g.renderPrompt(name), def: &sdk.Prompt{
			Name: name, Description: "系统提示词 " + name + " / the system prompt " + name,
			Arguments: []*sdk.PromptArgument{
				{Name: "language", Description: "zh 或 en，默认 zh / zh or en, zh by default"},
				{Name: "device_name", Description: "设备的名字 / what the device is called"},
				{Name: "assistant_name", Description: "助手的名字 / what the assistant is called"},
			},
		}})
	}
}

// deviceNames are the names of the devices that are connected.
func (g *Gateway) deviceNames(shown func(string) bool) []string {
	if g.options.Devices == nil {
		return nil
	}
	var out []string
	for _, d := range g.options.Devices.List() {
		if d.Name != "" && shown(d.ID) {
			out = append(out, d.Name)
		}
	}
	return out
}

// renderPrompt fills in one prompt.
func (g *Gateway) renderPrompt(name string) sdk.PromptHandler {
	return func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		invalid := func(zh, en string) error {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: say(contextLanguage(ctx), zh, en)}
		}
		data := prompts.Data{AssistantName: g.options.Assistant, Now: time.Now().In(g.options.Zone)}
		language := contextLanguage(ctx)
		for argument, value := range req.Params.Arguments {
			switch argument {
			case "language":
				if value != "zh" && value != "en" {
					return nil, invalid("language 只能是 zh 或 en", "language must be zh or en")
				}
				language = value
			case "device_name":
				data.DeviceName = value
			case "assistant_name":
				data.AssistantName = value
			default:
				return nil, invalid("未知的参数: "+clip(argument), "unknown argument: "+clip(argument))
			}
		}
		text, err := g.options.Prompts.Render(name, language, data)
		if err != nil {
			return nil, err
		}
		return &sdk.GetPromptResult{
			Description: req.Params.Name,
			Messages:    []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}},
		}, nil
	}
}
