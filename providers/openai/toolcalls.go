package openai

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
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
}

// arguments is the piece of the arguments' JSON text.
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

// assembler puts tool calls together from their pieces. One call is open at a
// time; it is complete when the next begins or the answer ends.
type assembler struct {
	open  *openCall
	known map[int]bool // indexes of calls given out
	count int
}

type openCall struct {
	index    int // -1 if the server names none
	id, name string
	args     strings.Builder
}

// push takes the next piece. It gives the call that this piece completes, if any.
func (a *assembler) push(p callPiece) (*providers.ToolCall, error) {
	index := -1
	if p.Index != nil {
		index = *p.Index
	}
	var complete *providers.ToolCall
	if a.begins(p, index) {
		if index >= 0 && a.known[index] && p.Function.Name == "" {
			return nil, a.late(p)
		}
		var err error
		if complete, err = a.flush(); err != nil {
			return nil, err
		}
		if a.count++; a.count > maxCalls {
			return nil, errors.New("the answer has too many tool calls")
		}
		a.open = &openCall{index: index}
	}
	call := a.open
	if call.id == "" {
		call.id = p.ID
	}
	switch {
	case call.name == "":
		call.name = p.Function.Name
	case p.Function.Name != call.name && call.args.Len() == 0:
		call.name += p.Function.Name // a name in two pieces
	}
	call.args.WriteString(p.arguments())
	return complete, nil
}

// late judges a piece of a call that was given out already: an empty one is
// harmless, any other would change what may be running by now.
func (a *assembler) late(p callPiece) error {
	if p.arguments() == "" {
		return nil
	}
	return errors.New("a piece of a tool call came after the call was complete")
}

// begins says whether the piece belongs to a new call.
func (a *assembler) begins(p callPiece, index int) bool {
	open := a.open
	if open == nil {
		return true
	}
	if index >= 0 && open.index >= 0 && index != open.index {
		return true
	}
	named := p.Function.Name != ""
	if !named {
		// Some servers make up a new id for every piece, others send the id alone first.
		return index < 0 && p.ID != "" && open.id != "" && p.ID != open.id && json.Valid([]byte(open.args.String()))
	}
	switch {
	case p.ID != "" && open.id != "" && p.ID != open.id:
		// Another call, unless a server repeats the name under a new id amid the arguments.
		return p.Function.Name != open.name || open.args.Len() == 0 || json.Valid([]byte(open.args.String()))
	case p.ID != "" && p.ID == open.id:
		return false
	}
	// The name again, with no id to tell: a new call if the open one is whole already.
	return index < 0 && open.args.Len() > 0 && json.Valid([]byte(open.args.String()))
}

// flush ends the open call and gives it, or nil if there is none.
func (a *assembler) flush() (*providers.ToolCall, error) {
	open := a.open
	if open == nil {
		return nil, nil //nolint:nilnil // no call is no error
	}
	a.open = nil
	if open.index >= 0 {
		if a.known == nil {
			a.known = make(map[int]bool)
		}
		a.known[open.index] = true
	}
	if open.name == "" {
		return nil, errors.New("a tool call has no name")
	}
	call := providers.ToolCall{ID: open.id, Name: open.name, Arguments: strings.TrimSpace(open.args.String())}
	if call.ID == "" {
		call.ID = "call_" + rand.Text()[:16]
	}
	if call.Arguments == "" || call.Arguments == "null" {
		call.Arguments = "{}"
	}
	return &call, nil
}
