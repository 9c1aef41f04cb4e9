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
			Name: name, Description: "系统提示词 " + name + " / the system prompt " + name,
			Arguments: []*sdk.PromptArgument{
				{Name: "language", Description: "zh 或 en，默认 zh / zh or en, zh by default"},
				{Name: "device_name", Description: "设备的名字 / what the device is called"},
				{Name: "assistant_name", Description: "助手的名字 / what the assistant is called"},
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
		invalid := func(zh, en string) error {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: catalog.Say(catalog.Language(ctx), zh, en)}
		}
		data := prompts.Data{AssistantName: l.assistant, Now: time.Now().In(l.zone)}
		language := catalog.Language(ctx)
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
				return nil, invalid("未知的参数: "+catalog.Clip(argument), "unknown argument: "+catalog.Clip(argument))
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
