package generation

import (
	"encoding/json"
	"strings"

	"xiaozhi/providers"
)

// tags are the names of the tags that models put around what is not for the ear: their
// thoughts, and calls of tools that their server has not recognised.
func tags() []string { return []string{"think", "thinking", "thought", "tool_call"} }

const (
	callEnd = "</tool_call>"
	maxCall = 64 << 10 // bytes of a call
)

// ThinkFilter tells <think>…</think> in a stream of text from the answer, and the other
// tags that models put around thoughts. The tags may be split anywhere. An end without a
// beginning, which some servers leave of a thought that they have taken out, is dropped.
// Calls in <tool_call>…</tool_call> are kept for Calls. Its zero value is ready.
type ThinkFilter struct {
	end   string // the tag that ends the thought that was begun; "": none was
	held  string // the beginning of what may become a tag
	call  strings.Builder
	calls []string // that are whole
	solid bool     // white space before this, at the beginning and after a thought, is not part of the answer
	lone  bool     // an end has come after text that no beginning had made a thought
	// What came since Begin, for it is the answer if no end follows; nil: nothing is expected to be a thought.
	maybe *strings.Builder
}

// Begin takes what comes for a thought whose beginning the server leaves out, as the templates of
// R1 and QwQ do, up to its end. Without an end it was the answer.
func (f *ThinkFilter) Begin() { f.end, f.maybe = "</think>", &strings.Builder{} }

// Told says that the server tells thoughts apart by itself: the text that follows is the answer.
func (f *ThinkFilter) Told() {
	if f.maybe != nil && f.maybe.Len() == 0 && f.held == "" {
		f.end, f.maybe = "", nil
	}
}

// Push takes the next piece and gives what is certain by now.
func (f *ThinkFilter) Push(piece string) (text, thought string) {
	rest := f.held + piece
	f.held = ""
	var texts, thoughts strings.Builder
	for rest != "" {
		at, tag := f.find(rest)
		if tag == "" {
			f.put(rest[:at], &texts, &thoughts)
			f.held = rest[at:]
			break
		}
		f.put(rest[:at], &texts, &thoughts)
		rest = rest[at+len(tag):]
		if end := strings.HasPrefix(tag, "</"); end {
			f.close()
			f.lone = f.lone || f.end == "" && f.solid
			f.end, f.solid, f.maybe = "", false, nil
		} else {
			f.end = "</" + tag[1:]
		}
	}
	return texts.String(), thoughts.String()
}

// find returns where the first tag that counts is, and which it is; if there is none, where
// what may become one begins.
func (f *ThinkFilter) find(text string) (at int, tag string) {
	at = len(text)
	if f.end != "" {
		if i := strings.Index(text, f.end); i >= 0 {
			return i, f.end
		}
		return at - overlap(text, f.end), ""
	}
	keep := 0
	for _, name := range tags() {
		for _, one := range []string{"<" + name + ">", "</" + name + ">"} {
			if i := strings.Index(text[:at], one); i >= 0 {
				at, tag = i, one
			}
			keep = max(keep, overlap(text, one))
		}
	}
	if tag == "" {
		at -= keep
	}
	return at, tag
}

// Flush returns what was held back at the end of the stream.
func (f *ThinkFilter) Flush() (text, thought string) {
	held := f.held
	f.held = ""
	var texts, thoughts strings.Builder
	f.put(held, &texts, &thoughts)
	if f.maybe != nil {
		said := f.maybe.String()
		f.end, f.maybe = "", nil
		text, thought = f.Push(said)
		last, more := f.Flush()
		return text + last, thought + more
	}
	f.close() // the end of a call is left out by some models
	return texts.String(), thoughts.String()
}

// put files a piece under text or thought.
func (f *ThinkFilter) put(piece string, texts, thoughts *strings.Builder) {
	switch f.end {
	case "":
	case callEnd:
		if f.call.Len() < maxCall {
			f.call.WriteString(piece)
		}
		return
	default:
		thoughts.WriteString(piece)
		if f.maybe != nil && f.maybe.Len() <= maxText {
			f.maybe.WriteString(piece)
		}
		return
	}
	if !f.solid {
		piece = strings.TrimLeft(piece, " \t\r\n")
		f.solid = piece != ""
	}
	texts.WriteString(piece)
}

// close ends a call.
func (f *ThinkFilter) close() {
	if f.end == callEnd {
		f.calls = append(f.calls, f.call.String())
		f.call.Reset()
	}
}

// Calls returns the calls of tools that stood in the text, once each. What is no call is dropped.
func (f *ThinkFilter) Calls() []providers.ToolCall {
	var out []providers.ToolCall
	for _, raw := range f.calls {
		var c struct {
			Name       string          `json:"name"`
			Arguments  json.RawMessage `json:"arguments"`
			Parameters json.RawMessage `json:"parameters"` // as some models call them
		}
		if json.Unmarshal([]byte(raw), &c) != nil || c.Name == "" {
			continue
		}
		arguments := string(c.Arguments)
		if len(c.Arguments) == 0 {
			arguments = string(c.Parameters)
		}
		var inText string
		if json.Unmarshal([]byte(arguments), &inText) == nil {
			arguments = inText
		}
		out = append(out, providers.ToolCall{ID: NewID(), Name: c.Name, Arguments: string(Object(arguments))})
	}
	f.calls = nil
	return out
}

// overlap returns the length of the longest end of text that tag begins with.
func overlap(text, tag string) int {
	for n := min(len(text), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}

// Solid reports whether there is any answer yet, or since the last thought.
func (f *ThinkFilter) Solid() bool { return f.solid }
