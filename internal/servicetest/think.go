package servicetest

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Tool is one that a client offers to a fake that thinks.
type Tool struct {
	Name   string
	Schema json.RawMessage // of its arguments
}

// Answer returns the words of every fake that thinks to the newest words of its user, or to the
// result of a tool.
func Answer(words string) string { return "I heard: " + words + ". That is all." }

// Asked lists the tools that a fake calls: those whose names the newest words of the user
// hold, in the order of the words. [Words] ask for a tool named "lamp".
func Asked(words string, tools []Tool) []Tool {
	var out []Tool
	for _, t := range tools {
		if t.Name != "" && strings.Contains(words, t.Name) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Tool) int {
		return cmp.Compare(strings.Index(words, a.Name), strings.Index(words, b.Name))
	})
	return out
}

// Arguments are those with which a fake calls a tool: for each property that its schema
// requires the first value that it names, or a plain one of its type.
func Arguments(schema json.RawMessage) string {
	var s struct {
		Properties map[string]struct {
			Type    string            `json:"type"`
			Enum    []json.RawMessage `json:"enum"`
			Minimum json.RawMessage   `json:"minimum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	_ = json.Unmarshal(schema, &s) // a tool without a schema takes nothing
	args := map[string]any{}
	for _, name := range s.Required {
		p := s.Properties[name]
		switch kind := strings.ToLower(p.Type); {
		case len(p.Enum) > 0:
			args[name] = p.Enum[0]
		case len(p.Minimum) > 0:
			args[name] = p.Minimum
		case kind == "integer" || kind == "number":
			args[name] = 1
		case kind == "boolean":
			args[name] = true
		case kind == "array":
			args[name] = []any{}
		case kind == "object":
			args[name] = map[string]any{}
		default:
			args[name] = "a word"
		}
	}
	return string(JSON(args).Data)
}

// Thirds cuts a text into three pieces between its runes; some may be empty.
func Thirds(s string) []string {
	r := []rune(s)
	a, b := len(r)/3, 2*len(r)/3
	return []string{string(r[:a]), string(r[a:b]), string(r[b:])}
}

// ThinkFaults are those that every service that thinks can have.
func ThinkFaults() []Fault {
	return []Fault{WrongKey, NoMoney, RateLimited, WrongModel, Slow, Silent, Cut, Closed, Broken, Huge, Odd}
}

// Take reads and keeps a plain request. It returns its body, or nil when that cannot be read.
func (s *Server) Take(w http.ResponseWriter, r *http.Request) []byte {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	s.Note(Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	if err != nil {
		return nil
	}
	return body
}
