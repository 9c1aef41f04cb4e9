package gemini

import (
	"encoding/base64"
	"encoding/json"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
)

// content is a message: those of user and model take turns.
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is a piece of a message. One member is set, the signature beside it.
type part struct {
	Text      string          `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature string          `json:"thoughtSignature,omitempty"`
	Call      *functionCall   `json:"functionCall,omitempty"`
	Response  *functionResult `json:"functionResponse,omitempty"`
	Image     *blob           `json:"inlineData,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"` // an object
}

type functionResult struct {
	ID       string         `json:"id,omitempty"`
	Name     string         `json:"name"`
	Response map[string]any `json:"response"`
}

type blob struct {
	Media string `json:"mimeType"`
	Data  string `json:"data"`
}

// echo goes back to the model with a call, or with the text of a message.
type echo struct {
	ID        string `json:"id,omitempty"` // that the service has given the call
	Signature string `json:"thoughtSignature,omitempty"`
}

// declarations maps the tools.
func declarations(specs []providers.ToolSpec) []map[string]any {
	out := make([]map[string]any, len(specs))
	for i, spec := range specs {
		out[i] = map[string]any{"name": spec.Name, "description": spec.Description}
		if !generation.TakesNothing(spec.Parameters) { // an object without properties is refused
			out[i]["parametersJsonSchema"] = generation.Schema(spec.Parameters)
		}
	}
	return out
}

// dialogue maps messages. The first is the user's; neighbours of one role become one; no part is empty. unsigned is
// the signature of calls that have none.
func dialogue(from []providers.Message, owner, unsigned string) (system string, out []content) {
	calls := map[string]functionCall{}
	add := func(role string, parts ...part) {
		if len(out) == 0 && role != "user" && len(parts) > 0 { // a dialogue that we have begun
			out = append(out, content{"user", []part{{Text: "…"}}})
		}
		if n := len(out); n > 0 && out[n-1].Role == role && len(parts) > 0 {
			out[n-1].Parts = append(out[n-1].Parts, parts...)
		} else if len(parts) > 0 {
			out = append(out, content{role, parts})
		}
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
			add("user", userParts(m)...)
		case providers.RoleTool:
			call := calls[m.ToolCallID]
			add("user", part{Response: &functionResult{call.ID, call.Name, map[string]any{"output": m.Content}}})
		case providers.RoleAssistant:
			add("model", modelParts(m, owner, unsigned, calls)...)
		}
	}
	return system, out
}

func userParts(m *providers.Message) (out []part) {
	for _, image := range m.Images {
		out = append(out, part{Image: &blob{image.MIMEType, base64.StdEncoding.EncodeToString(image.Data)}})
	}
	if m.Content != "" {
		out = append(out, part{Text: m.Content})
	}
	return out
}

// modelParts are the words and the calls of a message, with what the model wants back. It
// notes the calls by our ids.
func modelParts(m *providers.Message, owner, unsigned string, calls map[string]functionCall) (out []part) {
	var own echo
	_ = json.Unmarshal([]byte(m.Echo.For(owner)), &own) // what is none stays empty
	if m.Content != "" {
		out = append(out, part{Text: m.Content, Signature: own.Signature})
	}
	for i, c := range m.ToolCalls {
		own := echo{}
		_ = json.Unmarshal([]byte(c.Echo.For(owner)), &own)
		call := functionCall{own.ID, c.Name, generation.Object(c.Arguments)}
		calls[c.ID] = call
		if own.Signature == "" && i == 0 && c.Echo.For(owner) == "" {
			own.Signature = unsigned
		}
		out = append(out, part{Call: &call, Signature: own.Signature})
	}
	return out
}
