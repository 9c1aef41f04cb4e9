package rules

import (
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// steps of things at home, where no number was said.
const (
	homePercent = 20 // brighter, faster, louder
	homeDegrees = 1  // warmer
)

// house works what is at home by the tools that list it.
type house struct{ request }

// rooms are the names that the tools of a home list, as words of requests.
type rooms struct {
	meanings map[string]string // <thing>, <area> or <scene>
	spelled  map[string]string // as the tool has them
	areas    []string
	tools    bool // there are such tools
}

// isHome reports whether a tool works things at home by their names: an arm that can be set to its home position does not.
func isHome(t tool) bool { return len(t.words) > 1 && t.words[0] == "home" && t.takes("name") }

// homeTool finds the tool of a home with this word in its name.
func homeTool(tools []tool, word string) (tool, bool) {
	return find(tools, func(t tool) bool { return isHome(t) && t.has(word) })
}

// readRooms reads what there is at home from the choices of its tools.
func readRooms(tools []tool, lang text.Lang) rooms {
	r := rooms{meanings: map[string]string{}, spelled: map[string]string{}}
	add := func(choices []any, meaning string) {
		for _, c := range choices {
			name, _ := c.(string)
			for _, words := range namesOf(name, lang) {
				if r.meanings[words] == "" {
					r.meanings[words], r.spelled[words] = meaning, name
				}
			}
		}
	}
	for _, t := range tools {
		if !isHome(t) || !t.has("switch", "set", "media", "scene", "state") {
			continue
		}
		r.tools = true
		if t.has("scene") {
			add(t.schema.Properties["name"].Enum, "<scene>")
		} else {
			add(t.schema.Properties["name"].Enum, "<thing>")
		}
	}
	for _, t := range tools {
		if !isHome(t) {
			continue
		}
		areas := t.schema.Properties["area"].Enum
		add(areas, "<area>")
		for _, area := range areas {
			if name, _ := area.(string); name != "" && !slices.Contains(r.areas, name) {
				r.areas = append(r.areas, name)
			}
		}
	}
	return r
}

// namesOf returns a name as the words of a request, in English in the singular and the plural.
func namesOf(name string, lang text.Lang) []string {
	if lang.IsChinese() {
		return []string{chineseSigns(name)}
	}
	words := plainWords.Replace(strings.Join(englishWhole().englishWords(name), " "))
	if one, ok := strings.CutSuffix(words, "s"); ok {
		return []string{words, one}
	}
	return []string{words, words + "s"}
}

// kindsAtHome are the slots for things of a kind, without their angle brackets.
func kindsAtHome() []string {
	return []string{"light", "cover", "fan", "climate", "media_player", "switch"}
}

// named reports whether a request at home names something that is there.
func (in intent) named() bool {
	return in.slots["thing"] != "" || in.slots["area"] != "" || in.slots["scene"] != ""
}

// understandHome understands a request about things at home. After the question which room, its answer is one with what was asked before.
func (r house) understandHome() (in intent, ok bool) {
	lang := text.English
	if text.Of(r.said) == text.Chinese {
		lang = text.Chinese
	}
	there := readRooms(r.tools, lang)
	if !there.tools || r.scope == fastOnly || len(r.said) > maxSaid {
		return in, false
	}
	in, ok = r.readHome(r.said, r.zone, there, lang)
	if before := askedRoom(r.request); !ok && before != "" {
		in, ok = r.readHome(lang.Pick(r.said+before, before+" "+r.said), r.zone, there, lang)
	}
	if !ok {
		return in, false
	}
	for _, slot := range []string{"thing", "area", "scene"} {
		if said := in.slots[slot]; said != "" {
			in.slots[slot] = there.spelled[said]
		}
	}
	return in, true
}

// readHome reads words with the names of what there is.
func (b *Brain) readHome(said string, zone *time.Location, there rooms, lang text.Lang) (intent, bool) {
	now := b.options.Now().In(zone)
	if lang.IsChinese() {
		return chineseHome().read(b.words(said), now, there.meanings)
	}
	return englishHome().read(b.words(said), now, there.meanings)
}

// askedRoom returns the request about which the brain has just asked which room, "" if it has not.
func askedRoom(r request) string {
	last := len(r.Messages) - 1
	for last >= 0 && r.Messages[last].Role != providers.RoleUser {
		last--
	}
	if last < 2 || r.Messages[last-1].Role != providers.RoleAssistant || r.Messages[last-2].Role != providers.RoleUser {
		return ""
	}
	question, _, _ := strings.Cut(r.say(phraseWhichRoom, r.lang, "rooms", "\x00"), "\x00")
	if heard := r.Messages[last-1].Content; heard == "" || !strings.HasPrefix(heard, question) && !strings.HasPrefix(question, heard) {
		return ""
	}
	return r.Messages[last-2].Content
}

// workHome carries out a request about things at home.
func (r house) workHome(in intent) (providers.Delta, bool) {
	word := map[act]string{actHomeSwitch: "switch", actHomeSet: "set", actHomeMedia: "media", actHomeScene: "scene", actHomeState: "state"}[in.act]
	t, ok := homeTool(r.tools, word)
	if !ok {
		return providers.Delta{}, false
	}
	arguments := map[string]any{}
	put := func(name string, value any) {
		if _, has := t.schema.Properties[name]; has && value != "" {
			arguments[name] = value
		}
	}
	put("name", in.slots["thing"])
	put("area", in.slots["area"])
	kind := ""
	for _, k := range kindsAtHome() {
		if in.slots[k] != "" {
			kind = k
		}
	}
	if in.slots["thing"] == "" {
		put("kind", kind)
	}
	if areas := t.schema.Properties["area"].Enum; kind != "" && !in.named() && in.slots["all"] == "" && len(areas) > 1 && kind == "light" && in.act != actHomeState {
		return r.whichRoom(areas)
	}
	switch in.act {
	case actHomeSwitch:
		put("state", in.about)
	case actHomeMedia:
		put("action", in.about)
	case actHomeScene:
		put("name", in.slots["scene"])
	case actHomeState:
		if in.slots["thing"] == "" && in.slots["temperature"] != "" {
			put("name", r.lang.Pick("温度", "temperature"))
		}
		if in.slots["thing"] == "" && in.slots["humidity"] != "" {
			put("name", r.lang.Pick("湿度", "humidity"))
		}
	case actHomeSet:
		in.howMuch(put)
	default:
	}
	return r.call(t, arguments)
}

// howMuch puts into the arguments what something at home is set to.
func (in intent) howMuch(put func(name string, value any)) {
	warm := in.slots["climate"] != "" || in.slots["degrees"] != ""
	sign := map[string]int{"more": 1, "less": -1, "warmer": 1, "cooler": -1}[in.about]
	switch {
	case in.slots["color"] != "":
		put("color", in.slots["color"])
	case in.number != none && in.slots["by"] != "" && sign != 0:
		put("by", sign*in.number)
	case in.number != none && warm:
		put("temperature", in.number)
	case in.number != none:
		put("value", in.number)
	case in.about == "warmer" || in.about == "cooler" || sign != 0 && warm:
		put("by", sign*homeDegrees)
	case sign != 0:
		put("by", sign*homePercent)
	case in.about == "most":
		put("value", 100)
	case in.about == "least":
		put("value", 1)
	default:
		put("mode", in.about)
	}
}

// whichRoom asks where.
func (r house) whichRoom(areas []any) (providers.Delta, bool) {
	var names []string
	for _, area := range areas {
		if name, ok := area.(string); ok {
			names = append(names, name)
		}
	}
	return r.text(phraseWhichRoom, "rooms", strings.Join(names, r.lang.Pick("、", ", ")))
}

// carryOut works things at home. One of the device's own that is meant by the same words goes first, unless one at home is named.
func (r house) carryOut(in intent, done *result) (providers.Delta, bool) {
	if done != nil {
		return r.afterTool(in, *done)
	}
	if !in.named() {
		if own, ok := r.deviceTool(); ok {
			return own, true
		}
	}
	return r.workHome(in)
}
