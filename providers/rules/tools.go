package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"xiaozhi/internal/text"
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
	Enum        []any    `json:"enum"` // what it is one of; none: anything
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

// deviceTool finds a tool whose own words were said, such as "turn on the lamp"
// for self_lamp_turn_on. It must be the only one that fits best.
func (r request) deviceTool() (providers.Delta, bool) {
	if r.scope == fastOnly {
		return providers.Delta{}, false
	}
	var fits func(tool) (int, map[string]any)
	if text.Of(r.said) == text.Chinese {
		forms := chinese(everything).chineseForms(r.said, r.options.Name)
		fits = func(t tool) (int, map[string]any) { return chineseFit(t, forms), nil }
	} else {
		forms := english(everything).englishForms(r.said, r.options.Name)
		words := strings.Fields(forms[len(forms)-1])
		fits = func(t tool) (int, map[string]any) { return englishFit(t, words) }
	}
	best, tie := 0, false
	var chosen tool
	var arguments map[string]any
	for _, t := range r.tools {
		score, args := fits(t)
		switch {
		case score > best:
			best, tie, chosen, arguments = score, false, t, args
		case score == best && score > 0:
			tie = true
		}
	}
	if best == 0 || tie {
		return providers.Delta{}, false
	}
	return r.call(chosen, arguments)
}

// englishFit compares the words said with those of a tool's name: 2 when they
// are the same, 1 when they are the same but for weak verbs, else 0. A number
// that was said must be what the tool takes.
func englishFit(t tool, said []string) (int, map[string]any) {
	var words []string
	value := none
	for _, w := range said {
		if n, ok := digits(strings.Trim(w, "<%>")); ok && strings.HasPrefix(w, "<") {
			if value != none {
				return 0, nil
			}
			value = n
			continue
		}
		words = append(words, w)
	}
	var arguments map[string]any
	if value != none {
		name, ok := t.integer("value", "level")
		low, high := t.bounds(name)
		if !ok || value < low || value > high {
			return 0, nil
		}
		arguments = map[string]any{name: value}
	} else if !t.free() {
		return 0, nil
	}
	name := meaningful(spokenWords(t))
	words = meaningful(words)
	switch {
	case len(words) == 0:
		return 0, nil
	case slices.Equal(words, name):
		return 2, arguments
	}
	name, words = strong(name), strong(words)
	if len(words) >= 2 && slices.Equal(words, name) {
		return 1, arguments
	}
	return 0, nil
}

// spokenWords returns the words of a tool's name without those that only say where
// it comes from.
func spokenWords(t tool) []string {
	words := t.words
	for len(words) > 1 && slices.Contains([]string{"self", "mcp", "iot", "device", "tool"}, words[0]) {
		words = words[1:]
	}
	return words
}

// meaningful drops small words, makes one of words that mean the same, and
// sorts, since the order in a name is not that of speech.
func meaningful(words []string) []string {
	small := []string{"the", "a", "an", "my", "your", "of", "for", "to", "at", "please", "me", "this", "that", "is", "what"}
	same := map[string]string{"switch": "turn", "light": "lamp", "lights": "lamp", "lamps": "lamp", "picture": "photo"}
	var kept []string
	for _, w := range words {
		if slices.Contains(small, w) {
			continue
		}
		if other, ok := same[w]; ok {
			w = other
		}
		kept = append(kept, w)
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// strong drops the verbs that names have and speech leaves out, or the reverse.
func strong(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return slices.Contains([]string{"turn", "set", "get", "do", "make", "change"}, w)
	})
}

// chineseFit compares what was said with a tool's description and name: 3 when
// it is the description, 2 when thing and switch direction fit, 1 when the
// description holds it, else 0.
func chineseFit(t tool, forms []string) int {
	if !t.free() {
		return 0
	}
	clauses := strings.FieldsFunc(t.spec.Description, func(r rune) bool { return strings.ContainsRune("，。；！？,.;!?\n", r) })
	best := 0
	for _, said := range forms {
		switch {
		case len(clauses) > 0 && strings.TrimSpace(clauses[0]) == said:
			best = max(best, 3)
		case switches(t, said):
			best = max(best, 2)
		case len([]rune(said)) >= 2 && !slices.Contains(slices.Concat(directions()[0].said, directions()[1].said), said) && strings.Contains(t.spec.Description, said):
			best = max(best, 1)
		}
	}
	return best
}

// direction is on or off, as it is said and described in Chinese and as tools are named.
type direction struct{ said, named []string }

// directions are on and off.
func directions() [2]direction {
	return [2]direction{
		{[]string{"打开", "开启", "开"}, []string{"on", "open", "enable"}},
		{[]string{"关闭", "关掉", "关上", "熄灭", "关"}, []string{"off", "close", "disable"}},
	}
}

// switches reports whether said turns on or off what the tool turns on or off:
// 打开灯 for self_lamp_turn_on, whatever language it describes itself in.
func switches(t tool, said string) bool {
	if t.has("get", "read") {
		return false // it tells whether the thing is on
	}
	all := directions()
	for i, d := range all {
		other, thing := all[1-i], ""
		for _, verb := range d.said {
			rest, ok := strings.CutPrefix(said, verb)
			if !ok {
				rest, ok = strings.CutSuffix(said, verb)
			}
			if ok {
				thing = rest
				break
			}
		}
		described := containsAny(t.spec.Description, d.said) && !containsAny(t.spec.Description, other.said)
		if thing == "" || !t.has(d.named...) && !described || t.has(other.named...) {
			continue
		}
		if strings.Contains(t.spec.Description, thing) || t.has(chinese(fastOnly).Things[thing]...) {
			return true
		}
	}
	return false
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}
