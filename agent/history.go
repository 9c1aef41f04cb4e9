package agent

import (
	"bytes"
	"encoding/gob"

	"xiaozhi/providers"
)

// history is the dialogue with one device: real messages, tool calls and their
// results included, without the system prompt. It is for one goroutine.
type history struct {
	messages []providers.Message
	tokens   []int             // of the first messages, each; 0: not counted yet
	version  uint64            // counts the changes
	early    map[string]string // true results that came before their call was there
	packed   []byte            // messages and tokens, while the device is away; nil: they are not packed
}

// atRest holds the packed part of a history.
type atRest struct {
	Messages []providers.Message
	Tokens   []int
}

// pack makes a history small that nobody uses for now: a dialogue of many short
// messages takes a quarter of its memory, and is a single object.
func (h *history) pack() {
	if len(h.messages) == 0 || h.packed != nil {
		return
	}
	var b bytes.Buffer
	if gob.NewEncoder(&b).Encode(atRest{h.messages, h.tokens}) == nil { // else it stays as it is
		h.packed, h.messages, h.tokens = bytes.Clone(b.Bytes()), nil, nil
	}
}

// unpack makes it what it was before.
func (h *history) unpack() {
	if h.packed == nil {
		return
	}
	var r atRest
	_ = gob.NewDecoder(bytes.NewReader(h.packed)).Decode(&r) // what pack has written can be read
	h.packed, h.messages, h.tokens = nil, r.Messages, r.Tokens
}

// add appends what a turn brought.
func (h *history) add(m ...providers.Message) {
	h.messages = append(h.messages, m...)
	h.version++
	for id, result := range h.early {
		h.replaceResult(id, result)
	}
	h.early = nil
}

// correct sets the one result of a call, now or as soon as its turn is there.
func (h *history) correct(callID, result string) {
	if h.replaceResult(callID, result) {
		return
	}
	if h.early == nil {
		h.early = map[string]string{}
	}
	h.early[callID] = result
}

// clear forgets everything.
func (h *history) clear() {
	h.messages, h.tokens = nil, nil
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
			if i < len(h.tokens) {
				h.tokens[i] = 0
			}
			h.version++
			return true
		}
	}
	return false
}

// cut drops the oldest exchanges until the rest fits the budget of tokens. An
// exchange goes from a user's message to before the next, so a call is never
// split from its result. The newest exchange always stays. Each message is counted
// once: counting takes milliseconds, which other devices' frames would wait for.
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
		for k := from; k < to; k++ {
			sizes[i] += h.size(k, count)
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
		h.tokens = append([]int(nil), h.tokens[starts[first]:]...)
		h.version++
	}
}

// size is the tokens of a message.
func (h *history) size(i int, count func(string) int) int {
	for len(h.tokens) <= i {
		h.tokens = append(h.tokens, 0)
	}
	if h.tokens[i] == 0 {
		h.tokens[i] = messageTokens(h.messages[i], count)
	}
	return h.tokens[i]
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
