package settings

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"xiaozhi/internal/config"
)

// layer holds what people have set: sections by name, and values as JSON has them.
type layer map[string]any

// readLayer reads a layer as it is stored.
func readLayer(doc string) (layer, error) {
	l := layer{}
	if doc == "" {
		return l, nil
	}
	in := json.NewDecoder(strings.NewReader(doc))
	in.UseNumber()
	err := in.Decode(&l)
	return l, err
}

// write is the layer as it is stored.
func (l layer) write() (string, error) {
	doc, err := config.JSON(l)
	return string(doc), err
}

// clone copies all sections.
func (l layer) clone() layer { return cloned(map[string]any(l)).(map[string]any) }

func cloned(v any) any {
	section, ok := v.(map[string]any)
	if !ok {
		return v // lists are never changed, only replaced
	}
	fresh := make(map[string]any, len(section))
	for name, value := range section {
		fresh[name] = cloned(value)
	}
	return fresh
}

// get returns what is set at a path.
func (l layer) get(path []string) (v any, ok bool) {
	v = map[string]any(l)
	for _, name := range path {
		section, is := v.(map[string]any)
		if !is {
			return nil, false
		}
		if v, ok = section[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// set sets a value at a path, making sections on the way.
func (l layer) set(path []string, value any) {
	section := map[string]any(l)
	for _, name := range path[:len(path)-1] {
		below, ok := section[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			section[name] = below
		}
		section = below
	}
	section[path[len(path)-1]] = value
}

// remove takes away what is set at a path, and sections that are empty then.
func (l layer) remove(path []string) {
	if _, ok := l.get(path); !ok {
		return
	}
	for n := len(path) - 1; n >= 0; n-- {
		section := map[string]any(l)
		for _, name := range path[:n] {
			section = section[name].(map[string]any) // get has been there
		}
		delete(section, path[n])
		if len(section) > 0 {
			return
		}
	}
}

// with returns the layer after edits.
func (l layer) with(edits []Edit) layer {
	next := l.clone()
	for _, e := range edits {
		if e.Remove {
			next.remove(e.Path)
			continue
		}
		next.set(e.Path, cloned(e.Value))
	}
	return next
}

// leaves calls f for each value that is set, and for each section that is set and holds nothing.
func leaves(v any, path []string, f func(path []string, value any)) {
	section, ok := v.(map[string]any)
	if !ok || len(section) == 0 && len(path) > 0 {
		f(path, v)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(section)) {
		leaves(section[name], append(slices.Clone(path), name), f)
	}
}

// difference lists the edits that make a layer of another.
func difference(from, to layer) (edits []Edit) {
	leaves(map[string]any(to), nil, func(path []string, value any) {
		if was, ok := from.get(path); !ok || !same(was, value) {
			edits = append(edits, Edit{Path: path, Value: value})
		}
	})
	leaves(map[string]any(from), nil, func(path []string, _ any) {
		if _, ok := to.get(path); !ok { // what has become a section is listed above
			edits = append(edits, Edit{Path: path, Remove: true})
		}
	})
	slices.SortFunc(edits, func(a, b Edit) int { return slices.Compare(a.Path, b.Path) })
	return edits
}

// same reports whether two values are the same in JSON.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// touches reports whether one of two keys is the other, or a section of it.
func touches(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// changesOf describes how edits change a layer. Secrets are dots.
func changesOf(from layer, edits []Edit) []config.Change {
	all := make([]config.Change, 0, len(edits))
	for _, e := range edits {
		c := config.Change{Path: e.Path}
		if was, ok := from.get(e.Path); ok {
			c.Old, c.Secret = config.Shown(e.Path, was)
		}
		if !e.Remove {
			shown, secret := config.Shown(e.Path, e.Value)
			c.New, c.Secret = shown, c.Secret || secret
		}
		all = append(all, c)
	}
	return all
}
