package iot

import (
	"cmp"
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
			yes := true
			tool := k.tool(h.freeName(k.name, "get_"+snakeName(p.name, "value")), mcp.Query, p.name, p.description, nil)
			tool.Annotations.ReadOnly = &yes
			h.targets[tool.Name] = target{thing: k.name, property: p.name, kind: mcp.Query}
			h.tools = append(h.tools, tool)
		}
		for i := range k.methods {
			m := &k.methods[i]
			name := h.freeName(k.name, snakeName(m.name, "do"))
			to := target{thing: k.name, method: m, kind: kindOfMethod(name, m, h.kinds)}
			tool := k.tool(name, to.kind, m.name, m.description, m.parameters)
			if to.kind == mcp.Control {
				if to.change = changeOf(k.thing, m); to.change.known() {
					tool.Timeout = confirmTime
				}
			}
			h.targets[name] = to
			h.tools = append(h.tools, tool)
		}
	}
}

// tool is the tool for a property or a method of the thing.
func (t *thing) tool(name string, kind mcp.Kind, member, description string, parameters []value) mcp.Tool {
	return mcp.Tool{
		Name: name, Description: describeMember(member, description, t),
		Schema: schemaOf(parameters), Origin: mcp.Remote, Kind: kind, Source: "iot",
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
	description, of := cmp.Or(description, name), cmp.Or(th.description, th.name)
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
	isQuestion := func(p value) bool { return firstWordIn(p.name, "question", "query") }
	if asksFirst(m.name) || slices.ContainsFunc(m.parameters, isQuestion) {
		return mcp.Query
	}
	return mcp.Control
}

// queryWords are the Chinese words of asking, one a line.
//
//go:embed query.zh.txt
var queryWords string

// asksFirst reports whether a name begins with a word of asking.
func asksFirst(name string) bool {
	return firstWordIn(name, "get", "read", "query", "ask", "check", "measure", "detect", "find", "list", "is", "has") ||
		slices.ContainsFunc(strings.Fields(queryWords), func(word string) bool { return strings.HasPrefix(name, word) })
}

// firstWordIn reports whether the first word of a name is one of words.
func firstWordIn(name string, words ...string) bool {
	in := mcp.NameWords(name)
	return len(in) > 0 && slices.Contains(words, in[0])
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
