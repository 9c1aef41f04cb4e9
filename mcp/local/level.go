package local

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
)

// level is something of the device that goes up and down.
type level struct {
	word   string   // in names and states
	things []string // whose state holds it
	name   string   // the message that names it for people
}

func volume() level {
	return level{word: "volume", things: []string{"speaker", "audio"}, name: "local/volume"}
}

func brightness() level {
	return level{word: "brightness", things: []string{"screen", "display", "backlight"}, name: "local/brightness"}
}

// setter is the device's tool that sets a level; its zero value is none.
type setter struct {
	tool, argument string
	low, high      int
	plain          bool // its name says it: the model needs no other
}

// setterOf finds it. One that says set is better, and one that names the thing;
// a lamp's brightness is not the screen's.
func (l level) setterOf(tools []mcp.Tool) setter {
	best, found := 0, setter{}
	for _, tool := range tools {
		t, ok := readTool(tool, l.word)
		if !ok || t.has("get", "read", "lamp", "light", "led", "mic", "microphone") {
			continue
		}
		argument := t.only([]string{"integer", "number"}, l.word, "level", "value", "percent")
		if argument == "" {
			continue
		}
		score := 1
		plain := t.has("set", "change")
		if plain {
			score += 2
		}
		if t.has(l.things...) {
			score++
		}
		if score > best {
			low, high := t.bounds(argument)
			best, found = score, setter{t.name, argument, low, high, plain}
		}
	}
	return found
}

// readerOf finds the tool that tells the level: one of its own, the state of
// its thing, or the status of all the device; "" is none.
func (l level) readerOf(tools []mcp.Tool) string {
	best, found := 0, ""
	for _, tool := range tools {
		t, ok := readTool(tool, "get", "read", "status", "state")
		if !ok || t.has("set", "mic", "microphone", "lamp", "light", "led") {
			continue
		}
		score := 0
		switch {
		case t.has(l.word):
			score = 3
		case t.has(l.things...) && t.has("status", "state"):
			score = 2
		case t.has("status", "state") && t.has("device", "get") && t.has("device", "self"):
			score = 1
		}
		if score > best && t.free("") {
			best, found = score, t.name
		}
	}
	return found
}

// lacksPlain reports whether set_volume and its like are offered: the device can do it,
// but its own tool has another name.
func (l level) lacksPlain(tools []mcp.Tool) bool {
	s := l.setterOf(tools)
	return s.tool != "" && !s.plain
}

// moves reports whether adjust_volume and its like are offered.
func (l level) moves(tools []mcp.Tool) bool {
	return l.setterOf(tools).tool != "" && l.readerOf(tools) != ""
}

// set is the handler of set_volume and its like: 0 to 100, whatever the device's own scale is.
func (l level) set(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	percent, ok := intArg(arguments, l.word)
	if !ok {
		return fail(say(ctx, "local/level-number"))
	}
	return l.change(ctx, func(int) int { return percent }, false)
}

// adjust is the handler of adjust_volume and its like.
func (l level) adjust(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	words := textArg(arguments, "change")
	m, ok := spoken.ParseMove(words)
	if !ok || !readable(ctx, words) {
		return fail(say(ctx, "local/level-unclear"))
	}
	if by, ok := intArg(arguments, "by"); ok && by > 0 {
		m.By = by
	}
	return l.change(ctx, m.From, m.Relative())
}

// change sets the level to what next makes of the present one, in hundredths of
// the device's scale. The present one is asked for only when it is needed.
func (l level) change(ctx context.Context, next func(now int) int, relative bool) mcp.ActionResponse {
	device := mcp.PeerFrom(ctx)
	tools := device.Tools()
	s := l.setterOf(tools)
	if s.tool == "" {
		return fail(say(ctx, "local/level-none", say(ctx, l.name)))
	}
	now := 0
	if relative {
		value, ok := l.read(ctx, device, tools)
		if !ok {
			return fail(say(ctx, "local/level-untold", say(ctx, l.name)))
		}
		now = toPercent(value, s.low, s.high)
	}
	percent := min(max(next(now), 0), 100)
	value := fromPercent(percent, s.low, s.high)
	r := device.Call(ctx, s.tool, map[string]any{s.argument: value})
	if r.Action.Failed() {
		return r
	}
	if relative && percent == now {
		return speak(ctx, say(ctx, "local/level-already", say(ctx, l.name), now))
	}
	return speak(ctx, say(ctx, "local/level-set", say(ctx, l.name), percent))
}

// read asks the device for the level.
func (l level) read(ctx context.Context, device mcp.Peer, tools []mcp.Tool) (int, bool) {
	reader := l.readerOf(tools)
	if reader == "" {
		return 0, false
	}
	r := device.Call(ctx, reader, nil)
	if r.Action != mcp.ActionTypeReqLLM {
		return 0, false
	}
	told := mcp.ResultText(r)
	if n, err := strconv.Atoi(told); err == nil {
		return n, true
	}
	return findNumber(told, l.word, l.things)
}

// toPercent and fromPercent go between the device's scale and hundredths of it.
func toPercent(value, low, high int) int {
	if high <= low {
		return value
	}
	return ((value-low)*100 + (high-low)/2) / (high - low)
}

func fromPercent(percent, low, high int) int {
	return low + ((high-low)*percent+50)/100
}

// maxDepth is how deep a device's result is looked into.
const maxDepth = 6

// findNumber finds the number of a name in a device's result, which is JSON,
// also as a text (standard firmware). What stands under one of the things comes
// first.
func findNumber(result, name string, things []string) (int, bool) {
	var root any
	_ = json.Unmarshal([]byte(result), &root) // what is no JSON holds no name
	if n, ok := searchNumber(root, name, things, false, 0); ok {
		return n, true
	}
	return searchNumber(root, name, nil, true, 0)
}

// searchNumber looks at an object's own members before it looks into them.
func searchNumber(v any, name string, things []string, within bool, depth int) (int, bool) {
	if depth > maxDepth {
		return 0, false
	}
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		for _, key := range keys {
			if n, ok := wholeNumber(v[key]); ok && within && strings.EqualFold(key, name) {
				return n, true
			}
		}
		for _, key := range keys {
			inside := within || slices.ContainsFunc(mcp.NameWords(key), func(w string) bool { return slices.Contains(things, w) })
			if n, ok := searchNumber(v[key], name, things, inside, depth+1); ok {
				return n, true
			}
		}
	case []any:
		for _, item := range v {
			if n, ok := searchNumber(item, name, things, within, depth+1); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// wholeNumber is a number, or a text that is one, or one in an object's value
// (IoT properties).
func wholeNumber(v any) (int, bool) {
	switch v := v.(type) {
	case float64:
		return int(v), v >= -1e6 && v <= 1e6
	case string:
		n, err := strconv.Atoi(strings.TrimSpace(v))
		return n, err == nil
	case map[string]any:
		if _, nested := v["value"].(map[string]any); !nested {
			return wholeNumber(v["value"])
		}
	}
	return 0, false
}
