package openai

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
)

// noParameters is the schema of a tool that takes nothing.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// The parts of a request's body.
type (
	wireMessage struct {
		Role       string          `json:"role"`
		Content    any             `json:"content"` // a text, []wirePart, or null beside tool calls
		Reasoning  *string         `json:"reasoning_content,omitempty"`
		Details    json.RawMessage `json:"reasoning_details,omitempty"`
		ToolCalls  []wireCall      `json:"tool_calls,omitempty"`
		ToolCallID string          `json:"tool_call_id,omitempty"`
	}
	wireCall struct {
		ID       string          `json:"id"`
		Type     string          `json:"type"`
		Function wireFunction    `json:"function"`
		Extra    json.RawMessage `json:"extra_content,omitempty"`
	}
	wireFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	wireTool struct {
		Type     string   `json:"type"`
		Function wireSpec `json:"function"`
	}
	wireSpec struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	wirePart struct {
		Type  string     `json:"type"`
		Text  string     `json:"text,omitempty"`
		Image *wireImage `json:"image_url,omitempty"`
	}
	wireImage struct {
		URL string `json:"url"`
	}
)

// function is the type of all tools and calls.
const function = "function"

// tokenLimitKey returns the key of the token limit. OpenAI's reasoning models refuse
// the older name, most other servers know only that one.
func tokenLimitKey(model string) string {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return "max_completion_tokens"
		}
	}
	return "max_tokens"
}

// chatBody encodes the body of the request for a step, without what the server has
// refused before.
func (o Options) chatBody(req providers.LLMRequest, refused *refusals) ([]byte, error) {
	body := map[string]any{"model": o.Model, "stream": true, "messages": o.chatMessages(req.Messages, refused)}
	if len(req.Tools) > 0 && (!req.NoTools || !o.Quirks.NoChoice) {
		body["tools"] = o.chatTools(req.Tools)
		if req.NoTools { // with no tools listed, servers refuse a choice
			body["tool_choice"] = "none"
		}
	}
	if !o.Quirks.NoUsage {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	if o.Quirks.Switch != nil {
		maps.Copy(body, o.Quirks.Switch(o.Model))
	}
	if o.Temperature != nil {
		body["temperature"] = *o.Temperature
	}
	if o.MaxTokens > 0 {
		body[refused.limitKey(tokenLimitKey(o.Model))] = o.MaxTokens
	}
	refused.drop(body)
	if err := generation.Merge(body, o.Extra); err != nil { // a configured key that cannot be sent is named
		return nil, err
	}
	return json.Marshal(body)
}

// chatTools maps the tools.
func (o Options) chatTools(specs []providers.ToolSpec) []wireTool {
	tools := make([]wireTool, len(specs))
	for i, spec := range specs {
		parameters := spec.Parameters
		if len(parameters) == 0 {
			parameters = noParameters
		}
		tools[i] = wireTool{function, wireSpec{spec.Name, spec.Description, generation.Without(parameters, o.Quirks.BadSchema...)}}
	}
	return tools
}

// chatMessages maps the dialogue. There is one system message, at the start.
func (o Options) chatMessages(messages []providers.Message, refused *refusals) []wireMessage {
	owner := generation.Owner(o.Name, o.Model)
	ids := generation.IDs{Short: o.Quirks.ShortIDs}
	out := make([]wireMessage, 0, len(messages))
	echoed := false
	for i := range messages {
		m := &messages[i]
		if last := len(out) - 1; m.Role == providers.RoleSystem && last >= 0 {
			if words, ok := out[0].Content.(string); ok && out[0].Role == string(providers.RoleSystem) {
				out[0].Content = words + "\n\n" + m.Content
				continue
			}
		}
		if last := len(out) - 1; o.Quirks.AfterTools && m.Role == providers.RoleUser && last >= 0 && out[last].Role == string(providers.RoleTool) {
			out = append(out, wireMessage{Role: string(providers.RoleAssistant), Content: "OK."})
		}
		message := chatMessage(m, owner, &ids)
		echoed = echoed || message.Reasoning != nil
		out = append(out, message)
	}
	if echoed || refused.Has(noteEchoed) { // what goes back must go back with every message
		for i := range out {
			if out[i].Role == string(providers.RoleAssistant) && out[i].Reasoning == nil {
				out[i].Reasoning = new(string)
			}
		}
	}
	return out
}

// chatMessage maps one message. Calls go out with arguments that are JSON, for
// strict servers refuse a dialogue that holds a model's broken ones.
func chatMessage(m *providers.Message, owner string, ids *generation.IDs) wireMessage {
	message := wireMessage{Role: string(m.Role), Content: m.Content, ToolCallID: ids.Of(m.ToolCallID)}
	switch {
	case len(m.Images) > 0:
		message.Content = parts(m)
	case m.Content == "" && len(m.ToolCalls) > 0:
		message.Content = nil
	}
	if own := m.Echo.For(owner); own != "" {
		var back struct {
			Content *string         `json:"reasoning_content"`
			Details json.RawMessage `json:"reasoning_details"`
		}
		if json.Unmarshal([]byte(own), &back) == nil {
			message.Reasoning, message.Details = back.Content, back.Details
		}
	}
	for _, call := range m.ToolCalls {
		arguments := call.Arguments
		if !json.Valid([]byte(arguments)) {
			arguments = "{}"
		}
		wired := wireCall{ID: ids.Of(call.ID), Type: function, Function: wireFunction{call.Name, arguments}}
		if own := call.Echo.For(owner); own != "" {
			var back struct {
				Extra json.RawMessage `json:"extra_content"`
			}
			if json.Unmarshal([]byte(own), &back) == nil {
				wired.Extra = back.Extra
			}
		}
		message.ToolCalls = append(message.ToolCalls, wired)
	}
	return message
}

// parts returns the content of a message that holds pictures: the text and then
// each picture as a data URL, which every server takes, also one on this machine.
func parts(m *providers.Message) []wirePart {
	var out []wirePart
	if m.Content != "" {
		out = append(out, wirePart{Type: "text", Text: m.Content})
	}
	for _, image := range m.Images {
		url := "data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
		out = append(out, wirePart{Type: "image_url", Image: &wireImage{url}})
	}
	return out
}

// reasoningContent is the key that servers want in every message as soon as they have reasoned.
const reasoningContent = "reasoning_content"

// droppable lists the keys of a body that are left out when a server refuses them.
func droppable() []string {
	return []string{
		"enable_thinking", "thinking", "reasoning", "reasoning_split", "chat_template_kwargs", "stream_options", "tool_choice", "temperature",
	}
}
