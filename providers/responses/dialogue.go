package responses

import (
	"encoding/base64"
	"encoding/json"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
)

// The items of a dialogue.
type (
	messageItem struct {
		Role    string `json:"role"`
		Content any    `json:"content"` // a text or []inputPart
	}
	inputPart struct {
		Type  string `json:"type"`
		Text  string `json:"text,omitempty"`
		Image string `json:"image_url,omitempty"`
	}
	callItem struct {
		Type      string `json:"type"`
		ID        string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	resultItem struct {
		Type   string `json:"type"`
		ID     string `json:"call_id"`
		Output string `json:"output"`
	}
	tool struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"` // the schemas of devices are not
	}
)

// tools maps the tools.
func tools(specs []providers.ToolSpec) []tool {
	out := make([]tool, len(specs))
	for i, spec := range specs {
		out[i] = tool{Type: "function", Name: spec.Name, Description: spec.Description, Parameters: generation.Schema(spec.Parameters)}
	}
	return out
}

// dialogue maps messages to items.
func dialogue(from []providers.Message, owner string) (instructions string, out []any) {
	var ids generation.IDs
	for i := range from {
		m := &from[i]
		switch m.Role {
		case providers.RoleSystem:
			if instructions != "" {
				instructions += "\n\n"
			}
			instructions += m.Content
		case providers.RoleUser:
			out = append(out, messageItem{"user", userContent(m)})
		case providers.RoleTool:
			out = append(out, resultItem{"function_call_output", ids.Of(m.ToolCallID), m.Content})
		case providers.RoleAssistant:
			out = append(out, assistantItems(m, owner, &ids)...)
		}
	}
	return instructions, out
}

func userContent(m *providers.Message) any {
	if len(m.Images) == 0 {
		return m.Content
	}
	var parts []inputPart
	if m.Content != "" {
		parts = append(parts, inputPart{Type: "input_text", Text: m.Content})
	}
	for _, image := range m.Images {
		parts = append(parts, inputPart{Type: "input_image", Image: "data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)})
	}
	return parts
}

// assistantItems are the reasoning that the model wants back, its words and its calls.
func assistantItems(m *providers.Message, owner string, ids *generation.IDs) (out []any) {
	var items []json.RawMessage
	if own := m.Echo.For(owner); own != "" && json.Unmarshal([]byte(own), &items) == nil {
		for _, raw := range items {
			out = append(out, raw)
		}
	}
	if m.Content != "" {
		out = append(out, messageItem{"assistant", m.Content})
	}
	for _, c := range m.ToolCalls {
		arguments := c.Arguments
		if !json.Valid([]byte(arguments)) {
			arguments = "{}"
		}
		out = append(out, callItem{"function_call", ids.Of(c.ID), c.Name, arguments})
	}
	return out
}
