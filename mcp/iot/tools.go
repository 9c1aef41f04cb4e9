package iot

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"xiaozhi/mcp"
)

// toolSchema is the schema of a tool made from a method.
type toolSchema struct {
	Type       string              `json:"type"`
	Properties map[string]argument `json:"properties"`
	Required   []string            `json:"required,omitempty"`
	Additional bool                `json:"additionalProperties"`
}

type argument struct {
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
}

// rebuild makes the tools of all things. The caller holds mu.
func (h *home) rebuild() {
	h.tools, h.targets = nil, make(map[string]target)
	for _, k := range h.things {
		for _, p := range k.properties {
			name := h.freeName(k.name, "get_"+snakeName(p.name, "value"))
			h.targets[name] = target{thing: k.name, property: p.name, kind: mcp.Query}
			h.tools = append(h.tools, readerTool(name, k.thing, p))
		}
		for i := range k.methods {
			m := &k.methods[i]
			name := h.freeName(k.name, snakeName(m.name, "do"))
			kind := kindOfMethod(name, m, h.kinds)
			h.targets[name] = target{thing: k.name, method: m, kind: kind}
			h.tools = append(h.tools, callerTool(name, k.thing, m, kind))
		}
	}
}

// freeName is the tool's name: self.THING.what in small letters, as devices of
// the standard dialect name theirs. One that is taken gets _2, _3 ….
func (h *home) freeName(thing, what string) string {
	base := "self." + snakeName(thing, "thing") + "." + what
	name := base
	for n := 2; ; n++ {
		if _, taken := h.targets[name]; !taken {
			return name
		}
		name = base + "_" + strconv.Itoa(n)
	}
}

// readerTool is the tool that reads a property.
func readerTool(name string, th *thing, p value) mcp.Tool {
	yes := true
	return mcp.Tool{
		Name: name, Description: describeMember(p.name, p.description, th),
		Schema: schemaOf(nil), Origin: mcp.Remote, Kind: mcp.Query,
		Annotations: mcp.Annotations{ReadOnly: &yes}, Source: "iot",
	}
}

// callerTool is the tool that calls a method.
func callerTool(name string, th *thing, m *method, kind mcp.Kind) mcp.Tool {
	return mcp.Tool{
		Name: name, Description: describeMember(m.name, m.description, th),
		Schema: schemaOf(m.parameters), Origin: mcp.Remote, Kind: kind, Source: "iot",
	}
}

// schemaOf declares the parameters, all required and no others.
func schemaOf(parameters []value) json.RawMessage {
	s := toolSchema{Type: "object", Properties: make(map[string]argument, len(parameters))}
	for _, p := range parameters {
		s.Properties[p.name] = argument{Type: p.kind, Description: p.description}
		s.Required = append(s.Required, p.name)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and booleans always have a JSON form
	}
	return raw
}

// describeMember says in the device's own words what a member is, then what it is a
// member of; names stand where words are missing.
func describeMember(name, description string, th *thing) string {
	if description == "" {
		description = name
	}
	of := th.description
	if of == "" {
		of = th.name
	}
	if of == description {
		return description
	}
	separator := "; "
	if strings.ContainsFunc(description, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		separator = "；"
	}
	return strings.TrimRight(description, "。.;； ") + separator + of
}

// kindOfMethod decides whether a method is a query: what an override says; else
// its name, when it begins with a word of asking; else a parameter that is a
// question. All others are controls, since there is no reply to wait for.
func kindOfMethod(tool string, m *method, overrides map[string]mcp.Kind) mcp.Kind {
	if kind, _, ok := mcp.OverrideOf(tool, overrides); ok && (kind == mcp.Control || kind == mcp.Query) {
		return kind
	}
	isQuestion := func(p value) bool {
		words := mcp.NameWords(p.name)
		return len(words) > 0 && (words[0] == "question" || words[0] == "query")
	}
	if asksName(m.name) || slices.ContainsFunc(m.parameters, isQuestion) {
		return mcp.Query
	}
	return mcp.Control
}

// queryWords are the Chinese words of asking, one a line.
//
//go:embed query.zh.txt
var queryWords string

// asksName reports whether a name begins with a word of asking.
func asksName(name string) bool {
	words := mcp.NameWords(name)
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "get", "read", "query", "ask", "check", "measure", "detect", "find", "list", "is", "has":
		return true
	}
	return slices.ContainsFunc(strings.Fields(queryWords), func(word string) bool { return strings.HasPrefix(name, word) })
}

// snakeName writes a name in small letters with underscores between its words:
// TurnOn and "turn on" become turn_on, RGBLight becomes rgb_light. A name
// without a letter or digit becomes the fallback.
func snakeName(name, fallback string) string {
	var b strings.Builder
	runes := []rune(name)
	gap := false
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			gap = true
			continue
		}
		if i > 0 && unicode.IsUpper(r) {
			before := runes[i-1]
			last := i+1 == len(runes) || !unicode.IsLower(runes[i+1])
			gap = gap || unicode.IsLower(before) || unicode.IsDigit(before) && !last || unicode.IsUpper(before) && !last
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(unicode.ToLower(r))
	}
	if b.Len() == 0 {
		return fallback
	}
	return b.String()
}
