package n8n

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// line is one of a stream.
type line struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"` // a text, or what an error holds
	Message string          `json:"message"`
}

// answer reads one answer: lines of a stream, one JSON value, or plain text.
type answer struct {
	streams bool
	open    int // nodes that have begun and not ended
	body    []byte
}

// Event reads one line.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	var l line
	if known := json.Unmarshal(e.Data, &l) == nil; !a.streams && (!known || !streams(l.Type)) {
		a.body = append(append(a.body, e.Data...), '\n')
		return false, nil
	} else if !known {
		return false, errors.New("a line is not the JSON expected")
	}
	a.streams = true
	var content string
	_ = json.Unmarshal(l.Content, &content) // other content is no text to be said
	switch l.Type {
	case "begin":
		a.open++
	case "end":
		a.open--
	case "item":
		give(providers.Delta{Text: content})
	case "error":
		return false, transport.Refused(providers.Unavailable, "", cmp.Or(content, l.Message, "the workflow has failed"))
	}
	return false, nil
}

// streams reports whether it is the type of a line of a stream.
func streams(kind string) bool {
	return kind == "begin" || kind == "item" || kind == "end" || kind == "error"
}

// EOF ends the answer.
func (a *answer) EOF(give generation.Give) error {
	if a.streams {
		if a.open > 0 {
			return generation.ErrIncomplete
		}
		return nil
	}
	text, err := reply(a.body)
	if err == nil {
		give(providers.Delta{Text: text})
	}
	return err
}

// End has nothing left to give.
func (a *answer) End(generation.Give) error { return nil }

// reply finds what is to be said in what a webhook has answered.
func reply(body []byte) (string, error) {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return "", generation.ErrIncomplete
	case body[0] == '<':
		return "", errors.New("the reply is a page")
	case body[0] != '{' && body[0] != '[' && body[0] != '"':
		return string(body), nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return "", errors.New("the reply is not the JSON expected")
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	text := find(value, 0)
	switch {
	case strings.HasPrefix(text, "Workflow was started"), strings.HasPrefix(text, "Workflow got started"):
		return "", transport.Refused(providers.BadRequest, "", "the webhook answers before the workflow has run: let it respond when the last node finishes, by a node, or in a stream")
	case text == "":
		if fault := generation.FaultOf(body); fault != nil {
			return "", fault.Refusal()
		}
		return "", transport.Refused(providers.BadRequest, "", "the reply has no output, text, answer, response or message to be said")
	}
	if fault := generation.FaultOf(body); fault != nil {
		return "", fault.Refusal()
	}
	return text, nil
}

// find looks for the text of an answer in the shapes that workflows give; "" if there is none.
func find(value any, depth int) string {
	if depth > 4 {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 {
			return find(v[0], depth+1)
		}
	case map[string]any:
		for _, name := range []string{"output", "text", "answer", "response", "reply", "message", "content", "data", "json"} {
			if text := find(v[name], depth+1); text != "" {
				return text
			}
		}
	}
	return ""
}
