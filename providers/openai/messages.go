package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"

	"xiaozhi/providers"
)

// noParameters is the schema of a tool that takes nothing.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// The request of the wire, as far as structs say it. go-openai has such structs,
// but none for a temperature of zero, the keys of other servers, and a content in
// every message.
type (
	wireMessage struct {
		Role       string     `json:"role"`
		Content    any        `json:"content"` // a text, []wirePart, or null beside tool calls: strict servers want the key
		ToolCalls  []wireCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	wireCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function wireFunction `json:"function"`
	}
	wireFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	wirePart struct {
		Type     string     `json:"type"`
		Text     string     `json:"text,omitempty"`
		ImageURL *wireImage `json:"image_url,omitempty"`
	}
	wireImage struct {
		URL string `json:"url"`
	}
	wireTool struct {
		Type     string          `json:"type"`
		Function wireDeclaration `json:"function"`
	}
	wireDeclaration struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// chatBody is the body of the request for a step. It is encoded in one go: with a
// long history and many tools that takes a good part of a millisecond, in which a
// core does nothing else.
func (o Options) chatBody(req providers.LLMRequest) ([]byte, error) {
	messages := make([]wireMessage, len(req.Messages))
	for i, m := range req.Messages {
		messages[i] = chatMessage(m)
	}
	body := map[string]any{"model": o.Model, "stream": true, "messages": messages}
	if len(req.Tools) > 0 {
		body["tools"] = chatTools(req.Tools)
		if req.NoTools { // with no tools listed, servers refuse a choice
			body["tool_choice"] = "none"
		}
	}
	if o.Temperature != nil {
		body["temperature"] = *o.Temperature
	}
	if o.MaxTokens > 0 {
		body[tokenLimitKey(o.Model)] = o.MaxTokens
	}
	for key, value := range o.Extra { // a configured key that cannot be sent is named
		if _, err := json.Marshal(value); err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
	}
	maps.Copy(body, o.Extra)
	return json.Marshal(body)
}

// chatTools maps the tools.
func chatTools(specs []providers.ToolSpec) []wireTool {
	out := make([]wireTool, len(specs))
	for i, spec := range specs {
		parameters := spec.Parameters
		if len(parameters) == 0 {
			parameters = noParameters
		}
		out[i] = wireTool{"function", wireDeclaration{spec.Name, spec.Description, parameters}}
	}
	return out
}

// chatMessage maps one message. Calls go out with arguments that are JSON, for
// strict servers refuse a dialogue that holds a model's broken ones.
func chatMessage(m providers.Message) wireMessage {
	message := wireMessage{Role: string(m.Role), Content: m.Content, ToolCallID: m.ToolCallID}
	switch {
	case len(m.Images) > 0:
		message.Content = parts(m)
	case m.Content == "" && len(m.ToolCalls) > 0:
		message.Content = nil
	}
	for _, call := range m.ToolCalls {
		arguments := call.Arguments
		if !json.Valid([]byte(arguments)) {
			arguments = "{}"
		}
		message.ToolCalls = append(message.ToolCalls, wireCall{call.ID, "function", wireFunction{call.Name, arguments}})
	}
	return message
}

// parts is the content of a message that holds pictures: the text and then each
// picture as a data URL, which every server takes, also one on this machine.
func parts(m providers.Message) []wirePart {
	var out []wirePart
	if m.Content != "" {
		out = append(out, wirePart{Type: "text", Text: m.Content})
	}
	for _, image := range m.Images {
		out = append(out, wirePart{Type: "image_url", ImageURL: &wireImage{"data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)}})
	}
	return out
}
