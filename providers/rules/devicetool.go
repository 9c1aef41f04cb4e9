package rules

import (
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// deviceTool finds a tool whose own words were said, such as "turn on the lamp"
// for self_lamp_turn_on. It must be the only one that fits best.
func (r request) deviceTool() (providers.Delta, bool) {
	if r.scope == fastOnly {
		return providers.Delta{}, false
	}
	var fits func(tool) (int, map[string]any)
	if text.Of(r.said) == text.Chinese {
		forms := chineseForms(r.said, r.options.Name)
		fits = func(t tool) (int, map[string]any) { return chineseFit(t, forms), nil }
	} else {
		forms := englishForms(r.said, r.options.Name)
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
		if strings.Contains(t.spec.Description, thing) || t.has(chinese().Things[thing]...) {
			return true
		}
	}
	return false
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}
