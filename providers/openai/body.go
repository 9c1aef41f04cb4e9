package openai

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
)

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
		Parameters  json.RawMessage `json:"parameters,omitempty"`
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
	if len(req.Tools) > 0 && (!req.NoTools || !o.Quirks.NoChoice && !refused.Has(toolChoice)) {
		body["tools"] = o.chatTools(req.Tools)
		if req.NoTools { // with no tools listed, servers refuse a choice
			body[toolChoice] = "none"
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
		tools[i] = wireTool{function, wireSpec{Name: spec.Name, Description: spec.Description}}
		if !o.Quirks.NoEmpty || !generation.TakesNothing(spec.Parameters) {
			tools[i].Function.Parameters = generation.Schema(spec.Parameters, o.Quirks.BadSchema...)
		}
	}
	return tools
}

// chatMessages maps the dialogue. There is one system message, at the start. A message of the
// assistant that holds nothing is left out: some servers refuse it.
func (o Options) chatMessages(messages []providers.Message, refused *refusals) []wireMessage {
	owner := generation.Owner(o.Name, o.Model)
	ids := generation.IDs{Short: o.Quirks.ShortIDs, Loose: o.Quirks.LooseIDs}
	out := make([]wireMessage, 0, len(messages))
	echoed := false
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Role == providers.RoleSystem && len(out) > 0:
			out = withSystem(out, m.Content)
			continue
		case m.Role == providers.RoleAssistant && m.Content == "" && len(m.ToolCalls) == 0:
			continue
		}
		out = o.takeTurns(out, m)
		message := o.chatMessage(m, owner, &ids)
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

// withSystem adds words to the system message, which it makes if there is none.
func withSystem(out []wireMessage, words string) []wireMessage {
	if out[0].Role != string(providers.RoleSystem) {
		return slices.Insert(out, 0, wireMessage{Role: string(providers.RoleSystem), Content: words})
	}
	if before, ok := out[0].Content.(string); ok {
		out[0].Content = before + "\n\n" + words
	}
	return out
}

// takeTurns puts words before a message where the server wants user and assistant to take turns.
func (o Options) takeTurns(out []wireMessage, m *providers.Message) []wireMessage {
	user, assistant, last := string(providers.RoleUser), string(providers.RoleAssistant), ""
	if n := len(out); n > 0 {
		last = out[n-1].Role
	}
	switch {
	case m.Role == providers.RoleUser && (o.Quirks.AfterTools && last == string(providers.RoleTool) || o.Quirks.Alternate && (last == user || last == string(providers.RoleTool))):
		return append(out, wireMessage{Role: assistant, Content: "OK."})
	case m.Role == providers.RoleAssistant && o.Quirks.Alternate && (last == "" || last == string(providers.RoleSystem) || last == assistant):
		return append(out, wireMessage{Role: user, Content: "…"})
	}
	return out
}

// chatMessage maps one message. Calls go out with arguments that are JSON, for
// strict servers refuse a dialogue that holds a model's broken ones.
func (o Options) chatMessage(m *providers.Message, owner string, ids *generation.IDs) wireMessage {
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
	for i, call := range m.ToolCalls {
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
		} else if i == 0 && o.Quirks.Unsigned != nil {
			wired.Extra = o.Quirks.Unsigned(o.Model)
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

// toolChoice is the key by which tools may not be called; a server that refuses it is listed no tools then.
const toolChoice = "tool_choice"

// droppable lists the keys of a body that are left out when a server refuses them.
func droppable() []string {
	return []string{
		"enable_thinking", "thinking", "reasoning", "reasoning_split", "chat_template_kwargs", "stream_options", toolChoice, "temperature",
	}
}
