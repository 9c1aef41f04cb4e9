package openaichat

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// request holds the members of a client's request.
type request struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Tools    []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Choice      json.RawMessage `json:"tool_choice"`
	Stream      bool            `json:"stream"`
	Temperature *float64        `json:"temperature"`
	Options     struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Thinking struct {
		Type string `json:"type"`
	} `json:"thinking"`
}

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning *string         `json:"reasoning_content"`
	Call      string          `json:"tool_call_id"`
	Calls     []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
		Extra struct {
			Google struct {
				Signature string `json:"thought_signature"`
			} `json:"google"`
		} `json:"extra_content"`
	} `json:"tool_calls"`
}

var (
	names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	nine  = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)
)

// thinks says whether a vendor thinks unless it is told not to.
func (q *request) thinks(v Vendor) bool {
	return (v == DeepSeek || v == Kimi || v == GLM) && q.Thinking.Type != "disabled"
}

// read takes a request. It returns what is wrong with it, or nil.
func (q *request) read(body []byte, v Vendor) *problem {
	bad := func(words string) *problem {
		return &problem{http.StatusBadRequest, "", "invalid_request_error", words}
	}
	if err := json.Unmarshal(body, q); err != nil {
		return bad("We could not parse the JSON body of your request: " + err.Error())
	}
	if name := unknown(body, v); name != "" {
		if v == Mistral {
			return &problem{http.StatusUnprocessableEntity, "", "extra_forbidden", "Extra inputs are not permitted: " + name}
		}
		return bad("Unrecognized request argument supplied: " + name)
	}
	switch {
	case q.Model == "" || len(q.Messages) == 0:
		return bad("you must provide a model and messages")
	case len(q.Choice) > 0 && len(q.Tools) == 0:
		return bad("'tool_choice' is only allowed when 'tools' are specified.")
	case v == Kimi && q.Temperature != nil:
		return bad("invalid temperature: only 1 is allowed for this model")
	}
	for i, t := range q.Tools {
		if t.Type != "function" || !names.MatchString(t.Function.Name) {
			return bad(fmt.Sprintf("Invalid 'tools[%d].function.name'", i))
		}
		if why := schemaFits(t.Function.Parameters, v); why != "" {
			return bad("Invalid schema for function '" + t.Function.Name + "': " + why)
		}
	}
	var open []string // ids of calls that want their results
	for i, m := range q.Messages {
		if len(open) > 0 && m.Role != "tool" {
			return bad("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': " + strings.Join(open, ", "))
		}
		if m.Role == "tool" {
			at := slices.Index(open, m.Call)
			if at < 0 {
				return bad("messages with role 'tool' must be a response to a preceding message with 'tool_calls'")
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if why := q.fits(i, m, v); why != "" {
			return bad(why)
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return bad("An assistant message with 'tool_calls' must be followed by tool messages")
	}
	return nil
}

// schemaFits says what is wrong with the schema of a tool, or "".
func schemaFits(raw json.RawMessage, v Vendor) string {
	var s map[string]json.RawMessage
	switch {
	case len(raw) == 0:
		return ""
	case json.Unmarshal(raw, &s) != nil || string(s["type"]) != `"object"`:
		return `schema must be a JSON Schema of 'type: "object"'`
	case v == OpenAI && (s["anyOf"] != nil || s["oneOf"] != nil || s["allOf"] != nil || s["properties"] == nil):
		return "schema must have properties and not have 'oneOf'/'anyOf'/'allOf' at the top level."
	case v == Gemini && (string(s["properties"]) == "{}" || strings.Contains(string(raw), `"$ref"`)):
		return "parameters.properties: should be non-empty for OBJECT type"
	}
	return ""
}

// fits says what is wrong with a message that is no result of a tool, or "".
func (q *request) fits(i int, m message, v Vendor) string {
	content := string(m.Content)
	empty := content == "" || content == "null" || content == `""`
	switch {
	case m.Role != "system" && m.Role != "user" && m.Role != "assistant" && m.Role != "developer":
		return "Invalid value for role: " + m.Role
	case m.Role == "system" && i > 0 && (v == GLM || v == Gemini):
		return "messages: only one system message, at the start"
	case m.Role == "user" && empty || m.Role == "assistant" && empty && len(m.Calls) == 0:
		return fmt.Sprintf("messages[%d]: the content must not be empty", i)
	case m.Role == "assistant" && (v == DeepSeek || v == Kimi) && q.thinks(v) && len(q.Tools) > 0 && m.Reasoning == nil:
		return fmt.Sprintf("thinking is enabled but reasoning_content is missing in assistant message at index %d", i)
	}
	for n, c := range m.Calls {
		switch {
		case c.Type != "function" || c.ID == "" || !names.MatchString(c.Function.Name) || !json.Valid([]byte(c.Function.Arguments)):
			return fmt.Sprintf("messages[%d].tool_calls[%d]: invalid", i, n)
		case v == Mistral && !nine.MatchString(c.ID):
			return "Tool call id was " + c.ID + " but must be a-z, A-Z, 0-9, with a length of 9."
		case v == Gemini && n == 0 && c.Extra.Google.Signature != sign(c.Function.Name) && c.Extra.Google.Signature != unsigned:
			return "Function call is missing a thought_signature in functionCall parts."
		}
	}
	return ""
}

// unknown is a member of the request, or of a message, that a strict vendor does not know.
func unknown(body []byte, v Vendor) string {
	var all struct {
		Messages []map[string]json.RawMessage `json:"messages"`
	}
	var top map[string]json.RawMessage
	if v != Mistral && v != Groq && v != OpenAI || json.Unmarshal(body, &top) != nil || json.Unmarshal(body, &all) != nil {
		return ""
	}
	known := "model messages tools tool_choice stream temperature top_p stop max_tokens reasoning_effort parallel_tool_calls response_format presence_penalty frequency_penalty n prompt_cache_key "
	if v != Mistral {
		known += "stream_options max_completion_tokens service_tier reasoning_format user seed metadata store verbosity"
	} else {
		known += "stream_options random_seed safe_prompt"
	}
	for name := range top {
		if !slices.Contains(strings.Fields(known), name) {
			return name
		}
	}
	for _, m := range all.Messages {
		for name := range m {
			if !slices.Contains(strings.Fields("role content name tool_calls tool_call_id refusal"), name) {
				return "messages." + name
			}
		}
	}
	return ""
}

// newest returns what the user said last, or the results of tools.
func (q *request) newest() (words string, told bool) {
	for i := len(q.Messages) - 1; i >= 0 && q.Messages[i].Role == "tool"; i-- {
		words, told = text(q.Messages[i].Content)+words, true
	}
	for i := len(q.Messages) - 1; i >= 0 && !told; i-- {
		if q.Messages[i].Role == "user" {
			return text(q.Messages[i].Content), false
		}
	}
	return words, told
}

// text is content as a text, whether it is one or parts of one.
func text(raw json.RawMessage) (out string) {
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &out) == nil || json.Unmarshal(raw, &parts) != nil {
		return out
	}
	for _, p := range parts {
		out += p.Text
	}
	return out
}

// unsigned stands for the signature of a call that another model has made.
const unsigned = "skip_thought_signature_validator"

// sign is the signature of a call.
func sign(name string) string { return fmt.Sprintf("c2ln%08x", crc32.ChecksumIEEE([]byte(name))) }
