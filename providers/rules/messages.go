package rules

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// callPrefix begins the ids of the brain's own calls.
const callPrefix = "rules_"

// turn is the state of a request: the user's last words, and the newest result
// since then.
type turn struct {
	said   string
	result *result // nil when the user spoke last
}

// result is the outcome of a tool call.
type result struct {
	call providers.ToolCall
	text string
}

// own reports whether the brain itself made the call.
func (r result) own() bool { return strings.HasPrefix(r.call.ID, callPrefix) }

// readTurn finds the last thing said and what was done about it. It is false
// if there is no request.
func readTurn(messages []providers.Message) (turn, bool) {
	last := len(messages) - 1
	user := last
	for user >= 0 && messages[user].Role != providers.RoleUser {
		user--
	}
	if user < 0 {
		return turn{}, false
	}
	t := turn{said: messages[user].Content}
	if user == last {
		return t, true
	}
	if messages[last].Role != providers.RoleTool {
		return turn{}, false
	}
	t.result = &result{call: callOf(messages, messages[last].ToolCallID), text: messages[last].Content}
	return t, true
}

// callOf finds the newest call with the id.
func callOf(messages []providers.Message, id string) providers.ToolCall {
	for _, m := range slices.Backward(messages) {
		for _, c := range m.ToolCalls {
			if c.ID == id {
				return c
			}
		}
	}
	return providers.ToolCall{ID: id}
}

// newCall asks for a tool under an id that the messages do not hold yet.
func newCall(req providers.LLMRequest, t tool, arguments map[string]any) providers.Delta {
	taken := map[string]bool{}
	for _, m := range req.Messages {
		taken[m.ToolCallID] = true
		for _, c := range m.ToolCalls {
			taken[c.ID] = true
		}
	}
	n := 1
	for taken[callPrefix+strconv.Itoa(n)] {
		n++
	}
	text, err := json.Marshal(arguments)
	if err != nil || arguments == nil {
		text = []byte("{}")
	}
	return providers.Delta{ToolCalls: []providers.ToolCall{{
		ID: callPrefix + strconv.Itoa(n), Name: t.spec.Name, Arguments: string(text),
	}}}
}

// langOf returns the language to answer in.
func langOf(req providers.LLMRequest) text.Lang {
	if req.Language != "" {
		return text.Lang(req.Language)
	}
	if t, ok := readTurn(req.Messages); ok && text.Of(t.said) != text.Chinese {
		return text.English
	}
	return text.Chinese
}
