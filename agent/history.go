package agent

import (
	"xiaozhi/providers"
)

// history is the dialogue with one device: real messages, tool calls and their
// results included, without the system prompt. It is for one goroutine.
type history struct {
	messages []providers.Message
	version  uint64 // counts the changes
}

// add appends what a turn brought.
func (h *history) add(m ...providers.Message) {
	h.messages = append(h.messages, m...)
	h.version++
}

// clear forgets everything.
func (h *history) clear() {
	h.messages = nil
	h.version++
}

// snapshot is a copy for a turn to work on.
func (h *history) snapshot() []providers.Message {
	return append([]providers.Message(nil), h.messages...)
}

// replaceResult sets the one result of a tool call, and reports whether the
// call is in the history.
func (h *history) replaceResult(callID, text string) bool {
	for i := len(h.messages) - 1; i >= 0; i-- {
		if m := &h.messages[i]; m.Role == providers.RoleTool && m.ToolCallID == callID {
			m.Content = text
			h.version++
			return true
		}
	}
	return false
}

// cut drops the oldest exchanges until the rest fits the budget of tokens. An
// exchange goes from a user's message to before the next, so a call is never
// split from its result. The newest exchange always stays.
func (h *history) cut(budget int, count func(string) int) {
	starts := h.exchanges()
	if len(starts) < 2 || h.bytes() <= budget {
		return // a token has at least one byte, so this fits without counting
	}
	sizes := make([]int, len(starts))
	total := 0
	for i, from := range starts {
		to := len(h.messages)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		for _, m := range h.messages[from:to] {
			sizes[i] += messageTokens(m, count)
		}
		total += sizes[i]
	}
	first := 0
	for first < len(starts)-1 && total > budget {
		total -= sizes[first]
		first++
	}
	if first > 0 {
		h.messages = append([]providers.Message(nil), h.messages[starts[first]:]...)
		h.version++
	}
}

// exchanges lists where each exchange begins. Messages before the first user's
// message belong to the first exchange.
func (h *history) exchanges() []int {
	var starts []int
	for i, m := range h.messages {
		if i == 0 || m.Role == providers.RoleUser {
			starts = append(starts, i)
		}
	}
	return starts
}

// messageOverhead is what a message costs beside its text: role and separators
// (OpenAI's published counting rule: 3 tokens a message, 1 a name).
const messageOverhead = 4

func (h *history) bytes() int {
	n := 0
	for _, m := range h.messages {
		n += messageTokens(m, func(s string) int { return len(s) })
	}
	return n
}

func messageTokens(m providers.Message, count func(string) int) int {
	n := messageOverhead + count(m.Content)
	for _, c := range m.ToolCalls {
		n += messageOverhead + count(c.Name) + count(c.Arguments)
	}
	return n
}
