package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
)

// message is one of the dialogue: those of user and assistant take turns.
type message struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

// The blocks of a message.
type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	imageBlock struct {
		Type   string      `json:"type"`
		Source imageSource `json:"source"`
	}
	imageSource struct {
		Type  string `json:"type"`
		Media string `json:"media_type"`
		Data  string `json:"data"`
	}
	useBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	resultBlock struct {
		Type    string `json:"type"`
		ID      string `json:"tool_use_id"`
		Content string `json:"content"`
	}
	tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"input_schema"`
	}
)

// tools maps the tools.
func tools(specs []providers.ToolSpec) []tool {
	out := make([]tool, len(specs))
	for i, spec := range specs {
		out[i] = tool{spec.Name, spec.Description, generation.Schema(spec.Parameters)}
	}
	return out
}

// dialogue maps messages. The first is the user's; neighbours of one role become one;
// results of tools stand before what the user said after them.
func dialogue(from []providers.Message, owner string) (system string, out []message) {
	var ids generation.IDs
	add := func(role string, blocks ...any) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		if len(out) == 0 && role != "user" { // a dialogue that was cut, or that we have begun
			out = append(out, message{"user", []any{textBlock{"text", "…"}}})
		}
		out = append(out, message{role, blocks})
	}
	for i := range from {
		m := &from[i]
		switch m.Role {
		case providers.RoleSystem:
			if system != "" {
				system += "\n\n"
			}
			system += m.Content
		case providers.RoleUser:
			add("user", userBlocks(m)...)
		case providers.RoleTool:
			add("user", resultBlock{"tool_result", ids.Of(m.ToolCallID), m.Content})
		case providers.RoleAssistant:
			if blocks := assistantBlocks(m, owner, &ids); len(blocks) > 0 {
				add("assistant", blocks...)
			}
		}
	}
	return system, out
}

func userBlocks(m *providers.Message) (out []any) {
	for _, image := range m.Images {
		out = append(out, imageBlock{"image", imageSource{"base64", image.MIMEType, base64.StdEncoding.EncodeToString(image.Data)}})
	}
	if !blank(m.Content) || len(out) == 0 {
		out = append(out, textBlock{"text", notEmpty(m.Content)})
	}
	return out
}

// blank reports whether a text is refused because it holds nothing.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// notEmpty is for texts that must not be blank.
func notEmpty(text string) string {
	if blank(text) {
		return "…"
	}
	return text
}

// assistantBlocks are the thoughts that the model wants back, its words and its calls.
func assistantBlocks(m *providers.Message, owner string, ids *generation.IDs) (out []any) {
	var thoughts []json.RawMessage
	if own := m.Echo.For(owner); own != "" && json.Unmarshal([]byte(own), &thoughts) == nil {
		for _, raw := range thoughts {
			out = append(out, raw)
		}
	}
	if !blank(m.Content) {
		out = append(out, textBlock{"text", m.Content})
	}
	for _, c := range m.ToolCalls {
		out = append(out, useBlock{"tool_use", ids.Of(c.ID), c.Name, generation.Object(c.Arguments)})
	}
	return out
}
