package openai

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"xiaozhi/providers"
)

// maxCalls bounds the tool calls of one answer.
const maxCalls = 128

// callPiece is one entry of tool_calls in a chunk, as servers differ in it:
// index may be left out, arguments may be a text, an object or null.
type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"` // Gemini: a signature, which it wants back
}

// arguments returns the piece of the arguments' JSON text.
func (p callPiece) arguments() string {
	raw := bytes.TrimSpace(p.Function.Arguments)
	var text string
	switch {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return text
	}
	return string(raw)
}

// assembler puts tool calls together from their pieces. A call is given out
// as soon as its arguments are whole and the next call has begun; one whose
// arguments are not whole by then stays open, for some servers send the pieces
// of several calls in turns. Calls are given out in the order they began.
type assembler struct {
	open  []*openCall
	known map[int]bool // indexes of calls given out
	told  []*openCall  // calls given out
	count int
}

type openCall struct {
	index    int // -1 if the server names none
	id, name string
	args     strings.Builder
	extra    string
}

// same reports whether a piece is nothing but the call once more, as the last event of some
// servers repeats it.
func (c *openCall) same(p callPiece) bool {
	return p.ID != "" && p.ID == c.id && p.Function.Name == c.name && c.whole() && p.arguments() == c.args.String()
}

// whole reports whether nothing can be missing of the arguments.
func (c *openCall) whole() bool { return json.Valid([]byte(c.args.String())) }

// push takes the next piece. It gives the calls that are complete by it.
func (a *assembler) push(p callPiece) ([]providers.ToolCall, error) {
	index := -1
	if p.Index != nil {
		index = *p.Index
	}
	if slices.ContainsFunc(a.told, func(c *openCall) bool { return c.same(p) }) {
		return nil, nil
	}
	call := a.meant(index)
	var complete []providers.ToolCall
	if call == nil || call.next(p, index) {
		if call == nil && index >= 0 && a.known[index] && p.Function.Name == "" {
			if p.arguments() == "" { // an empty piece of a call that was given out is harmless
				return nil, nil
			}
			return nil, errors.New("a piece of a tool call came after the call was complete")
		}
		var err error
		if complete, err = a.give(false); err != nil {
			return nil, err
		}
		if a.count++; a.count > maxCalls {
			return nil, errors.New("the answer has too many tool calls")
		}
		call = &openCall{index: index}
		a.open = append(a.open, call)
	}
	if call.id == "" {
		call.id = p.ID
	}
	if len(p.Extra) > 0 && string(p.Extra) != "null" {
		call.extra = string(p.Extra)
	}
	switch {
	case call.name == "":
		call.name = p.Function.Name
	case p.Function.Name != call.name && call.args.Len() == 0:
		call.name += p.Function.Name // a name in two pieces
	}
	if !call.same(p) {
		call.args.WriteString(p.arguments())
	}
	return complete, nil
}

// meant returns the open call that a piece with that index belongs to, unless the
// piece begins the next one; nil for none. Without an index it is the newest.
func (a *assembler) meant(index int) *openCall {
	for _, call := range slices.Backward(a.open) {
		if index < 0 || call.index < 0 || call.index == index {
			return call
		}
	}
	return nil
}

// next reports whether the piece belongs to the call after c.
func (c *openCall) next(p callPiece, index int) bool {
	named := p.Function.Name != ""
	if !named {
		// Some servers make up a new id for every piece, others send the id alone first.
		return index < 0 && p.ID != "" && c.id != "" && p.ID != c.id && c.whole()
	}
	switch {
	case p.ID != "" && c.id != "" && p.ID != c.id:
		// Another call, unless a server repeats the name under a new id amid the arguments.
		return p.Function.Name != c.name || c.args.Len() == 0 || c.whole()
	case p.ID != "" && p.ID == c.id:
		// Another call under the same id, which is whole like this one; not this one once more.
		return c.whole() && strings.HasPrefix(p.arguments(), "{") && !c.same(p)
	}
	// The name again, with no id to tell: a new call if this one is whole already. Some
	// servers give all calls the same index.
	return (index < 0 || p.arguments() != "") && c.args.Len() > 0 && c.whole()
}

// give takes the first open calls off: all of them, or those to which nothing
// more can come, because they are whole or their server names no index.
func (a *assembler) give(all bool) (calls []providers.ToolCall, err error) {
	for len(a.open) > 0 && (all || a.open[0].index < 0 || a.open[0].whole()) {
		call, err := a.close(a.open[0])
		a.open = a.open[1:]
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// close makes the call of all its pieces.
func (a *assembler) close(open *openCall) (providers.ToolCall, error) {
	if open.index >= 0 {
		if a.known == nil {
			a.known = make(map[int]bool)
		}
		a.known[open.index] = true
	}
	a.told = append(a.told, open)
	if open.name == "" {
		return providers.ToolCall{}, errors.New("a tool call has no name")
	}
	call := providers.ToolCall{ID: open.id, Name: open.name, Arguments: strings.TrimSpace(open.args.String())}
	if open.extra != "" {
		call.Echo = providers.NewEcho("", `{"extra_content":`+open.extra+`}`) // the owner is named later
	}
	if call.ID == "" {
		call.ID = "call_" + rand.Text()[:16]
	}
	if call.Arguments == "" || call.Arguments == "null" {
		call.Arguments = "{}"
	}
	return call, nil
}
