package local

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"xiaozhi/mcp"
)

// What makers call their tools differs: self.audio_speaker.set_volume (standard
// firmware, device-protocol 5.5), amplify_volume (seed 000), Speaker SetVolume
// (IoT). They are known by the words of their names and the shape of their
// arguments.

// deviceTool is a tool of the device, read for its shape.
type deviceTool struct {
	name       string
	words      []string // of its name, in lower case
	properties map[string]property
	required   []string
}

// property is one argument.
type property struct {
	Type    any      `json:"type"` // a name, or a list of names
	Minimum *float64 `json:"minimum"`
	Maximum *float64 `json:"maximum"`
}

// readTool reads a tool whose name holds one of the parts, in lower case; the
// schemas of all others need not be read.
func readTool(t mcp.Tool, parts ...string) (deviceTool, bool) {
	name := strings.ToLower(t.Name)
	if !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) }) {
		return deviceTool{}, false
	}
	var schema struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if len(t.Schema) > 0 && json.Unmarshal(t.Schema, &schema) != nil {
		return deviceTool{}, false
	}
	return deviceTool{name: t.Name, words: nameWords(t.Name), properties: schema.Properties, required: schema.Required}, true
}

// nameWords are the words of a name in lower case: self.get_status, GetStatus.
func nameWords(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.Fields(b.String())
}

// has reports whether the name holds one of the words.
func (t deviceTool) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(t.words, w) })
}

// free reports whether it can be called without arguments, or with the given one alone.
func (t deviceTool) free(argument string) bool {
	return !slices.ContainsFunc(t.required, func(name string) bool { return name != argument })
}

// only is the name of its one argument of a type: one of the names, else the
// only one there is. "" is for none, and for a tool that wants more.
func (t deviceTool) only(kind []string, names ...string) string {
	var fit []string
	for name, p := range t.properties {
		if slices.ContainsFunc(kind, p.is) {
			fit = append(fit, name)
		}
	}
	found := ""
	if len(fit) == 1 {
		found = fit[0]
	}
	for _, name := range names {
		if slices.Contains(fit, name) {
			found = name
			break
		}
	}
	if found == "" || !t.free(found) {
		return ""
	}
	return found
}

// bounds are the least and the greatest value of a number, 0 and 100 where the
// schema does not say.
func (t deviceTool) bounds(argument string) (low, high int) {
	p := t.properties[argument]
	low, high = 0, 100
	if p.Minimum != nil {
		low = int(*p.Minimum)
	}
	if p.Maximum != nil {
		high = int(*p.Maximum)
	}
	return low, max(low, high)
}

func (p property) is(kind string) bool {
	switch v := p.Type.(type) {
	case string:
		return v == kind
	case []any:
		return slices.Contains(v, any(kind))
	}
	return false
}
