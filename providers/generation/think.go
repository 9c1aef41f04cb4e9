package generation

import "strings"

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// ThinkFilter tells <think>…</think> in a stream of text from the answer. The
// tags may be split anywhere. Its zero value is ready.
type ThinkFilter struct {
	inside bool
	held   string // the beginning of what may become a tag
	solid  bool   // white space before this, at the beginning and after a thought, is not part of the answer
}

// Push takes the next piece and gives what is certain by now.
func (f *ThinkFilter) Push(piece string) (text, thought string) {
	rest := f.held + piece
	f.held = ""
	var texts, thoughts strings.Builder
	for rest != "" {
		tag := thinkOpen
		if f.inside {
			tag = thinkClose
		}
		before, after, found := strings.Cut(rest, tag)
		if !found {
			keep := overlap(rest, tag)
			before, f.held = rest[:len(rest)-keep], rest[len(rest)-keep:]
		}
		f.put(before, &texts, &thoughts)
		if !found {
			break
		}
		f.solid = f.solid && !f.inside
		f.inside = !f.inside
		rest = after
	}
	return texts.String(), thoughts.String()
}

// Flush returns what was held back at the end of the stream.
func (f *ThinkFilter) Flush() (text, thought string) {
	held := f.held
	f.held = ""
	var texts, thoughts strings.Builder
	f.put(held, &texts, &thoughts)
	return texts.String(), thoughts.String()
}

// put files a piece under text or thought.
func (f *ThinkFilter) put(piece string, texts, thoughts *strings.Builder) {
	if f.inside {
		thoughts.WriteString(piece)
		return
	}
	if !f.solid {
		piece = strings.TrimLeft(piece, " \t\r\n")
		f.solid = piece != ""
	}
	texts.WriteString(piece)
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
