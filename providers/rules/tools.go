package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"xiaozhi/providers"
)

// tool is an offered tool, read for its shape.
type tool struct {
	spec   providers.ToolSpec
	words  []string // of its name, lower case
	schema schema
}

// schema is the part of a tool's parameters that the rules look at.
type schema struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

// property is one parameter.
type property struct {
	Type        any      `json:"type"` // a name, or a list of names
	Description string   `json:"description"`
	Minimum     *float64 `json:"minimum"`
	Maximum     *float64 `json:"maximum"`
}

// readTools reads the shapes of all tools. A schema that cannot be read counts
// as one without parameters, which must not be guessed: the tool is left out.
func readTools(specs []providers.ToolSpec) []tool {
	tools := make([]tool, 0, len(specs))
	for _, spec := range specs {
		t := tool{spec: spec, words: nameWords(spec.Name)}
		if len(spec.Parameters) > 0 && json.Unmarshal(spec.Parameters, &t.schema) != nil {
			continue
		}
		tools = append(tools, t)
	}
	return tools
}

// nameWords cuts self_audio_speaker_set_volume or Speaker_SetVolume into words.
func nameWords(name string) []string {
	var words []string
	start, runes := 0, []rune(name)
	flush := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			start = i + 1
		case unicode.IsUpper(r) && i > start && unicode.IsLower(runes[i-1]):
			flush(i)
			start = i
		}
	}
	flush(len(runes))
	return words
}

// has reports whether the name holds one of the words.
func (t tool) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(t.words, w) })
}

// free reports whether the tool can be called without arguments.
func (t tool) free() bool { return len(t.schema.Required) == 0 }

// integer returns the tool's one number: the parameter of one of the given names, or
// the only number it has. Every other parameter must be optional.
func (t tool) integer(names ...string) (string, bool) {
	var numbers []string
	for name, p := range t.schema.Properties {
		if p.is("integer") || p.is("number") {
			numbers = append(numbers, name)
		}
	}
	found := ""
	if i := slices.IndexFunc(names, func(name string) bool { return slices.Contains(numbers, name) }); i >= 0 {
		found = names[i]
	} else if len(numbers) == 1 {
		found = numbers[0]
	}
	others := slices.ContainsFunc(t.schema.Required, func(r string) bool { return r != found })
	return found, found != "" && !others
}

// bounds returns the least and the greatest value of a number, 0 and 100 where the
// schema does not say.
func (t tool) bounds(name string) (low, high int) {
	p := t.schema.Properties[name]
	low, high = 0, 100
	if p.Minimum != nil {
		low = int(*p.Minimum)
	}
	if p.Maximum != nil {
		high = int(*p.Maximum)
	}
	return low, max(low, high)
}

// is reports whether a parameter may be of the JSON type named.
func (p property) is(kind string) bool {
	switch v := p.Type.(type) {
	case string:
		return v == kind
	case []any:
		return slices.Contains(v, any(kind))
	default:
		return false
	}
}

// setter finds the tool that sets a level, and the name of its number.
func setter(tools []tool, of level) (t tool, argument string, ok bool) {
	best := 0
	for _, candidate := range tools {
		name, numbered := candidate.integer(string(of), "level", "value", "percent")
		if !numbered || !candidate.has(string(of)) || candidate.has("get", "read") {
			continue
		}
		score := 1
		if candidate.has("set", "adjust", "change") {
			score += 2
		}
		if candidate.has("speaker", "audio", "screen", "display", "backlight") {
			score++
		}
		if score > best {
			t, argument, ok, best = candidate, name, true, score
		}
	}
	return t, argument, ok
}

// batteryTool finds the tool that tells how full the battery is.
func batteryTool(tools []tool) (tool, bool) {
	about := func(t tool) bool { return t.has("battery") && !t.has("set", "reset", "calibrate") && t.free() }
	if t, ok := find(tools, func(t tool) bool { return about(t) && t.has("level", "percent", "charge") }); ok {
		return t, true
	}
	return find(tools, about)
}

// teller finds the tool that tells what an intent is about: the battery's own,
// the one that reads just that, as devices of older firmware have them, or the
// status of the device.
func teller(tools []tool, in intent) (tool, bool) {
	if in.act == actBattery {
		if t, ok := batteryTool(tools); ok {
			return t, true
		}
	}
	if in.level != "" {
		reads := func(t tool) bool { return t.has(string(in.level)) && t.has("get", "read") && t.free() }
		if t, ok := find(tools, reads); ok {
			return t, true
		}
	}
	status := func(t tool) bool {
		return t.has("status", "state") && t.has("device", "get") && !t.has("set") && t.free()
	}
	if t, ok := find(tools, status); ok {
		return t, true
	}
	return find(tools, func(t tool) bool {
		return in.act == actStatus && t.has("get", "read") && t.has(string(volume)) && t.free()
	})
}

// find takes the first tool that fits.
func find(tools []tool, fits func(tool) bool) (tool, bool) {
	i := slices.IndexFunc(tools, fits)
	if i < 0 {
		return tool{}, false
	}
	return tools[i], true
}

// player finds the tool that stops, pauses or skips, music first.
func player(tools []tool, verbs ...string) (tool, bool) {
	about := func(t tool) bool { return t.has("music", "player", "play", "media", "song", "track", "playback") }
	if t, ok := find(tools, func(t tool) bool { return t.has(verbs...) && about(t) && t.free() }); ok {
		return t, true
	}
	return find(tools, func(t tool) bool {
		return len(t.words) > 0 && slices.Contains(verbs, t.words[len(t.words)-1]) && t.free()
	})
}

// camera finds the tool that takes a picture, and the name of its question.
func camera(tools []tool) (t tool, question string, ok bool) {
	for _, t := range tools {
		if !t.has("photo", "picture", "camera") || t.has("set", "stop", "off", "music") {
			continue
		}
		question := ""
		for name, p := range t.schema.Properties {
			if p.is("string") && (name == "question" || len(t.schema.Properties) == 1) {
				question = name
			}
		}
		if slices.ContainsFunc(t.schema.Required, func(r string) bool { return r != question }) {
			continue
		}
		return t, question, true
	}
	return tool{}, "", false
}
