package config

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/mcp/rawjson"
	"xiaozhi/providers"
)

// Value is a setting as it holds.
type Value struct {
	Path   []string
	Value  any // as JSON has it, without secrets
	Origin Origin
	Secret bool // Value is what may be seen of it
	Set    bool // it is no default
}

// Key is the name of the setting, as people write it.
func (v Value) Key() string { return keyName(v.Path) }

// Values lists all settings as they hold, by their places in [Config], with where each was set.
func (c *Config) Values() (all []Value) {
	for path, v := range leaves(reflect.ValueOf(*c), nil) {
		o := c.OriginOf(path)
		all = append(all, Value{Path: path, Value: shown(path, v), Origin: o, Secret: secretive(path, v), Set: o.Layer != LayerDefault})
	}
	return all
}

// OriginOf says where a key was set, or something below it; of a secret in a file of its own, that file.
func (c *Config) OriginOf(path []string) Origin {
	fs := &findings{origins: c.reading().origins}
	if o := fs.secretOrigin(path); o.Layer != LayerDefault {
		return o
	}
	best, key := Origin{}, strings.Join(path, keySeparator)
	for leaf, o := range c.reading().origins {
		if strings.HasPrefix(leaf, key+keySeparator) && o.Layer >= best.Layer {
			best = o
		}
	}
	return best
}

// PinnedAt says where a key is set by what counts before the console: then it cannot be set there. The zero value: it can.
func (c *Config) PinnedAt(path []string) Origin {
	key := strings.Join(path, keySeparator)
	for leaf, o := range c.reading().origins {
		if o.Layer > LayerConsole && (leaf == key || strings.HasPrefix(leaf, key+keySeparator) || strings.HasPrefix(key, leaf+keySeparator)) {
			return o
		}
	}
	return Origin{}
}

// Change is a setting that holds another value than before. Secrets are dots.
type Change struct {
	Path     []string
	Old, New any // nil: it is not there
	Secret   bool
}

// Key is the name of the setting, as people write it.
func (ch Change) Key() string { return keyName(ch.Path) }

// Compare lists in what the settings differ from others.
func (c *Config) Compare(before *Config) (all []Change) {
	type pair struct{ old, new reflect.Value }
	pairs, paths := map[string]*pair{}, [][]string{}
	at := func(path []string) *pair {
		key := strings.Join(path, keySeparator)
		if pairs[key] == nil {
			pairs[key] = &pair{}
			paths = append(paths, path)
		}
		return pairs[key]
	}
	for path, v := range leaves(reflect.ValueOf(*before), nil) {
		at(path).old = v
	}
	for path, v := range leaves(reflect.ValueOf(*c), nil) {
		at(path).new = v
	}
	for _, path := range paths {
		p := pairs[strings.Join(path, keySeparator)]
		old, fresh := plain(p.old), plain(p.new)
		if reflect.DeepEqual(old, fresh) {
			continue
		}
		change := Change{Path: path}
		if p.old.IsValid() {
			change.Old, change.Secret = shown(path, p.old), secretive(path, p.old)
		}
		if p.new.IsValid() {
			change.New, change.Secret = shown(path, p.new), change.Secret || secretive(path, p.new)
		}
		all = append(all, change)
	}
	slices.SortFunc(all, func(a, b Change) int { return slices.Compare(a.Path, b.Path) })
	return all
}

func plain(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	return written(v)
}

// leaves yields all that can be set, by its path: a value, a list, or what belongs to one key.
func leaves(v reflect.Value, path []string) iter.Seq2[[]string, reflect.Value] {
	return func(yield func([]string, reflect.Value) bool) { eachLeaf(v, path, yield) }
}

func eachLeaf(v reflect.Value, path []string, yield func([]string, reflect.Value) bool) bool {
	t := v.Type()
	switch {
	case t.Kind() == reflect.Struct:
		for _, f := range keyFields(t) {
			if !eachLeaf(v.FieldByIndex(f.Index), append(slices.Clone(path), f.Tag.Get("koanf")), yield) {
				return false
			}
		}
		for _, f := range reflect.VisibleFields(t) {
			if f.Tag.Get("koanf") == remain && !eachLeaf(v.FieldByIndex(f.Index), path, yield) {
				return false
			}
		}
		return true
	case t == reflect.TypeFor[Voices]() && v.Len() == 0, t.Kind() == reflect.Pointer && v.IsNil():
		return true
	case t.Kind() == reflect.Map && t != reflect.TypeFor[Voices]():
		for _, name := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			if !eachLeaf(v.MapIndex(name), append(slices.Clone(path), name.String()), yield) {
				return false
			}
		}
		return true
	case t.Kind() == reflect.Interface && !v.IsNil() && v.Elem().Kind() == reflect.Map:
		return eachLeaf(v.Elem(), path, yield)
	}
	return yield(path, v)
}

// dots stand for a secret.
const dots = "••••"

// secretive reports whether a value is, or may hold, a secret.
func secretive(path []string, v reflect.Value) bool {
	if v.Type() == secretType() {
		return true
	}
	i := slices.IndexFunc(path, func(name string) bool { return slices.Contains(hidden, name) })
	return i >= 0 && (path[0] == "providers" || path[0] == "tools")
}

// shown returns the part of a value that people may see.
func shown(path []string, v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if secretive(path, v) {
		text := ""
		if v.Kind() == reflect.String {
			text = v.String()
		}
		switch {
		case strings.HasPrefix(text, sealedPrefix):
			return text // a name
		case v.IsZero():
			return ""
		}
		return dots
	}
	if voices, ok := v.Interface().(Voices); ok {
		return voices.written()
	}
	return redacted(v)
}

// written returns voices in the form of a file: one name, or one for each language.
func (v Voices) written() any {
	all := v[""]
	for _, name := range v {
		if all == "" || name != all {
			byTag := map[string]any{}
			for tag, name := range v {
				if tag != "" {
					byTag[tag] = name
				}
			}
			return byTag
		}
	}
	return all
}

// Tree returns all that was set, in the shape of config.yaml, with variables and references to secrets as they were
// written. plain puts what they stand for into their places; else secrets that stand there by themselves are left out, and their
// keys are returned.
func (c *Config) Tree(plain bool) (tree map[string]any, left []string) {
	tree = map[string]any{}
	for path, value := range leavesOf(c.reading().raw, nil) {
		if plain && isFileKey(path) {
			continue
		}
		if !plain {
			var ok bool
			if value, ok = withoutSecrets(value, path, &left); !ok {
				continue
			}
		}
		put(tree, path, value)
	}
	if plain {
		for path, v := range leaves(reflect.ValueOf(*c), nil) {
			if c.OriginOf(path).Layer != LayerDefault {
				put(tree, path, written(v))
			}
		}
	}
	for _, section := range sections(tree) {
		if voices, ok := section["voice"].(map[string]any); ok && voices[""] != nil {
			section["voice"] = voices[""]
		}
	}
	return tree, left
}

// withoutSecrets returns a value without the secrets that stand in it by themselves, whose keys it adds to left. Not ok:
// it is one.
func withoutSecrets(v any, path []string, left *[]string) (without any, ok bool) {
	switch v := v.(type) {
	case []any:
		list := make([]any, 0, len(v))
		for i, item := range v {
			if item, ok := withoutSecrets(item, append(slices.Clone(path), strconv.Itoa(i)), left); ok {
				list = append(list, item)
			}
		}
		return list, true
	case map[string]any:
		tree := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if item, ok := withoutSecrets(v[name], append(slices.Clone(path), name), left); ok {
				tree[name] = item
			}
		}
		return tree, true
	}
	if isSecret(path) && !isReference(v) {
		*left = append(*left, keyName(path))
		return nil, false
	}
	return v, true
}

// sections are those of providers.
func sections(tree map[string]any) (all []map[string]any) {
	providers, _ := tree["providers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		if section, ok := providers[name].(map[string]any); ok {
			all = append(all, section)
		}
	}
	return all
}

// isFileKey reports whether a key names the file of a secret.
func isFileKey(path []string) bool {
	return slices.ContainsFunc(path, func(name string) bool {
		secret, ok := strings.CutSuffix(name, fileSuffix)
		return ok && slices.Contains([]string{"token", "url", "api_key", "api_secret", "headers", "env"}, secret)
	})
}

// isReference reports whether a secret stands elsewhere.
func isReference(v any) bool {
	text, ok := v.(string)
	return ok && (text == "" || strings.HasPrefix(text, sealedPrefix) || strings.HasPrefix(text, "${") && strings.HasSuffix(text, "}") && strings.Count(text, "${") == 1 && !strings.Contains(text, ":-"))
}

// put sets a value in a tree.
func put(tree map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		child, ok := tree[name].(map[string]any)
		if !ok {
			child = map[string]any{}
			tree[name] = child
		}
		tree = child
	}
	tree[path[len(path)-1]] = value
}

// written is a value as a file has it, secrets too.
func written(v reflect.Value) any {
	switch special := v.Interface().(type) {
	case time.Duration:
		return special.String()
	case Size:
		return cmp.Or(special.String(), "0")
	case Voices:
		return special.written()
	case providers.Secret:
		return string(special)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return written(v.Elem())
	case reflect.Struct:
		tree := map[string]any{}
		for path, leaf := range leaves(v, nil) {
			put(tree, path, written(leaf))
		}
		return tree
	case reflect.Slice:
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			list = append(list, written(v.Index(i)))
		}
		return list
	default:
		return v.Interface()
	}
}

// JSON writes a tree as JSON.
func JSON(tree map[string]any) ([]byte, error) { return rawjson.Marshal(tree) }
