package local

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is how deep a device's result is looked into.
const maxDepth = 6

// tree is a device's result as JSON values: results are JSON, JSON inside a
// text (standard firmware), or plain.
func tree(result any) any {
	if text, ok := result.(string); ok {
		var v any
		if json.Unmarshal([]byte(text), &v) == nil {
			return v
		}
		return text
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil
	}
	var v any
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	return v
}

// findNumber finds the number of a name in a device's result. What stands under
// one of the things comes first.
func findNumber(result any, name string, things []string) (int, bool) {
	root := tree(result)
	if n, ok := searchNumber(root, name, things, false, 0); ok {
		return n, true
	}
	return searchNumber(root, name, nil, true, 0)
}

func searchNumber(v any, name string, things []string, within bool, depth int) (int, bool) {
	if depth > maxDepth {
		return 0, false
	}
	switch v := v.(type) {
	case map[string]any:
		return searchObject(v, name, things, within, depth)
	case []any:
		for _, item := range v {
			if n, ok := searchNumber(item, name, things, within, depth+1); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// searchObject looks at an object's own members before it looks into them.
func searchObject(v map[string]any, name string, things []string, within bool, depth int) (int, bool) {
	keys := slices.Sorted(maps.Keys(v))
	for _, key := range keys {
		if !within || !strings.EqualFold(key, name) {
			continue
		}
		if n, ok := wholeNumber(v[key]); ok {
			return n, true
		}
	}
	for _, key := range keys {
		inside := within || slices.ContainsFunc(nameWords(key), func(w string) bool { return slices.Contains(things, w) })
		if n, ok := searchNumber(v[key], name, things, inside, depth+1); ok {
			return n, true
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
