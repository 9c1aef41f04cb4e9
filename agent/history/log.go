// Package history keeps the dialogue with one device within a budget of tokens.
package history

import (
	"bytes"
	"encoding/gob"
	"slices"

	"xiaozhi/providers"
)

// Log is the dialogue with one device: messages, tool calls and their results,
// without the system prompt. Its zero value is empty. It is for one goroutine.
type Log struct {
	messages []providers.Message
	tokens   []int             // of the first messages, each; 0: not counted yet
	version  uint64            // counts the changes
	said     uint64            // counts those that are no results of tools
	early    map[string]string // true results that came before their call was there
	packed   []byte            // messages and tokens, while the device is away; nil: they are not packed
}

// New returns a log that holds a copy of the messages.
func New(messages []providers.Message) Log { return Log{messages: slices.Clone(messages)} }

// packedLog is the form of the packed part of a log.
type packedLog struct {
	Messages []providers.Message
	Tokens   []int
}

// Pack makes the log small while nobody uses it: a dialogue of many short
// messages takes a quarter of its memory, and is a single object.
func (l *Log) Pack() {
	if len(l.messages) == 0 || l.packed != nil {
		return
	}
	var b bytes.Buffer
	if gob.NewEncoder(&b).Encode(packedLog{l.messages, l.tokens}) == nil { // else it stays as it is
		l.packed, l.messages, l.tokens = bytes.Clone(b.Bytes()), nil, nil
	}
}

// Unpack undoes [Log.Pack].
func (l *Log) Unpack() {
	if l.packed == nil {
		return
	}
	var p packedLog
	_ = gob.NewDecoder(bytes.NewReader(l.packed)).Decode(&p) // what Pack has written can be read
	l.packed, l.messages, l.tokens = nil, p.Messages, p.Tokens
}

// Add appends what a turn has brought.
func (l *Log) Add(m ...providers.Message) {
	l.messages = append(l.messages, m...)
	l.version, l.said = l.version+1, l.said+1
	for id, result := range l.early {
		l.replaceResult(id, result)
	}
	l.early = nil
}

// SetResult sets the one result of a tool call, now or when the turn of the call
// is added next.
func (l *Log) SetResult(callID, result string) {
	if l.replaceResult(callID, result) {
		return
	}
	if l.early == nil {
		l.early = map[string]string{}
	}
	l.early[callID] = result
}

// Clear forgets all messages.
func (l *Log) Clear() {
	l.messages, l.tokens = nil, nil
	l.version, l.said = l.version+1, l.said+1
}

// Snapshot returns a copy of the messages.
func (l *Log) Snapshot() []providers.Message { return slices.Clone(l.messages) }

// Version changes with the messages.
func (l *Log) Version() uint64 { return l.version }

// Said changes with what was said: with the messages, but not with results of tools that come late.
func (l *Log) Said() uint64 { return l.said }

// replaceResult sets the one result of a tool call, and reports whether the
// call is in the log.
func (l *Log) replaceResult(callID, text string) bool {
	for i, m := range slices.Backward(l.messages) {
		if m.Role == providers.RoleTool && m.ToolCallID == callID {
			l.messages[i].Content = text
			if i < len(l.tokens) {
				l.tokens[i] = 0
			}
			l.version++
			return true
		}
	}
	return false
}

// Trim drops the oldest exchanges until the rest fits the budget of tokens. An
// exchange goes from a user's message to before the next, so a call is never split
// from its result. The newest exchange always stays. Each message is counted
// once: counting takes milliseconds, which other devices' frames would wait for.
// Without count, bytes are counted, which is never too few. It reports whether something was dropped.
func (l *Log) Trim(budget int, count func(string) int) (dropped bool) {
	if count == nil {
		count = func(text string) int { return len(text) }
	}
	var starts []int // of the exchanges
	bytes, total := 0, 0
	for i, m := range l.messages {
		if i == 0 || m.Role == providers.RoleUser {
			starts = append(starts, i)
		}
		bytes += messageTokens(m, func(s string) int { return len(s) })
	}
	if len(starts) < 2 || bytes <= budget {
		return false // a token has at least one byte, so this fits without counting
	}
	l.tokens = append(l.tokens, make([]int, len(l.messages)-len(l.tokens))...)
	for i, m := range l.messages {
		if l.tokens[i] == 0 {
			l.tokens[i] = messageTokens(m, count)
		}
		total += l.tokens[i]
	}
	first := 0
	for ; first < len(starts)-1 && total > budget; first++ {
		for _, n := range l.tokens[starts[first]:starts[first+1]] {
			total -= n
		}
	}
	if first > 0 {
		l.messages, l.tokens = slices.Clone(l.messages[starts[first]:]), slices.Clone(l.tokens[starts[first]:])
		l.version, l.said = l.version+1, l.said+1
	}
	return first > 0
}

// messageOverhead is what a message costs beside its text: role and separators
// (OpenAI's published counting rule: 3 tokens a message, 1 a name).
const messageOverhead = 4

// echoBytes is about how many bytes of an echo make a token. Most are no text that could be counted well.
const echoBytes = 3

func messageTokens(m providers.Message, count func(string) int) int {
	n := messageOverhead + count(m.Content) + len(m.Echo.JSON)/echoBytes
	for _, c := range m.ToolCalls {
		n += messageOverhead + count(c.Name) + count(c.Arguments) + len(c.Echo.JSON)/echoBytes
	}
	return n
}
