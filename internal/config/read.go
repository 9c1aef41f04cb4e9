package config

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/text"
)

// parseYAML parses YAML. A file that holds nothing, and one that is broken,
// give nil; the second is also a problem.
func parseYAML(name string, data []byte, found *findings) *yaml.Node {
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil && !errors.Is(decoder.Decode(&second), io.EOF) {
		err = errors.New("there is more than one document, or text after the first")
	}
	if err != nil {
		line, tab := yamlErrorLine(err, data)
		place := name + ":" + strconv.Itoa(line)
		if tab {
			found.add(place, "", "config/tab")
			return nil
		}
		found.add(place, "", "config/not-yaml", yamlErrorPlace().ReplaceAllString(err.Error(), ""))
		return nil
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		return nil
	}
	return doc.Content[0]
}

// yamlErrorLine returns the line that a parser's error is about. Tabs are looked for
// first, because the parser reports another line for them.
func yamlErrorLine(err error, data []byte) (line int, tab bool) {
	for i, text := range bytes.Split(data, []byte("\n")) {
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if bytes.ContainsRune(indent, '\t') && len(indent) < len(text) {
			return i + 1, true
		}
	}
	m := yamlErrorPlace().FindStringSubmatch(err.Error())
	if m == nil {
		return 1, false
	}
	n, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		return 1, false
	}
	if strings.Contains(err.Error(), "did not find expected") {
		n++ // the library counts from 0 where its parser, not its scanner, complains
	}
	return n, false
}

// yamlErrorPlace matches what the library's errors begin with.
func yamlErrorPlace() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?`) }

// reader turns YAML into a tree of plain values that fits Config, and notes the
// position of each key.
type reader struct {
	file string
	*findings
}

func configType() reflect.Type { return reflect.TypeFor[Config]() }

// read turns one node into a value for the type t. It returns false if something was
// wrong and reported; the rest of a section is returned all the same.
func (r reader) read(n *yaml.Node, t reflect.Type, path []string) (any, bool) {
	r.places[strings.Join(path, keySeparator)] = r.at(n)
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.add(r.at(n), "", "config/anchors", keyName(path))
		return nil, false
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return r.duration(n, path)
	case t == reflect.TypeFor[Size]():
		return r.size(n, path)
	case t == reflect.TypeFor[Voices]():
		return r.voices(n, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return r.mapping(n, t, path)
	case reflect.Map:
		return r.mapping(n, t, path)
	case reflect.Slice:
		return r.list(n, t.Elem(), path)
	case reflect.Interface:
		var v any
		if err := n.Decode(&v); err != nil {
			r.wrong(n, path, "config/a-value")
			return nil, false
		}
		return v, true
	default:
		return r.scalar(n, t, path)
	}
}

// mapping reads a section, or a map whose keys are names.
func (r reader) mapping(n *yaml.Node, t reflect.Type, path []string) (any, bool) {
	if n.Kind != yaml.MappingNode {
		return r.wrong(n, path, "config/a-section")
	}
	tree, ok := map[string]any{}, true
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := keyInTree(path, key.Value)
		if line, twice := seen[name]; twice {
			r.add(r.at(key), "", "config/set-twice", keyName(append(path, key.Value)), line)
			r.hole(path)
			ok = false
			continue
		}
		seen[name] = key.Line
		child, known := childType(t, name)
		if key.Kind != yaml.ScalarNode || !known {
			r.unknownKey(r.at(key), path, key.Value, childNames(t))
			r.hole(path)
			ok = false
			continue
		}
		full := append(slices.Clone(path), name)
		if value.ShortTag() == "!!null" && value.Kind == yaml.ScalarNode {
			r.places[strings.Join(full, keySeparator)] = r.at(key)
			if child == freeNames(t) && child.Kind() == reflect.Struct {
				tree[name] = map[string]any{}
			}
			continue // a key with nothing after it sets nothing
		}
		v, fine := r.read(value, child, full)
		r.places[strings.Join(full, keySeparator)] = r.at(key)
		ok = ok && fine
		if _, section := v.(map[string]any); !fine && !section {
			r.hole(path)
			continue
		}
		tree[name] = v
	}
	return tree, ok
}

func (r reader) list(n *yaml.Node, element reflect.Type, path []string) (any, bool) {
	if n.Kind != yaml.SequenceNode {
		return r.wrong(n, path, "config/a-list")
	}
	values, ok := make([]any, 0, len(n.Content)), true
	for i, item := range n.Content {
		v, fine := r.read(item, element, append(slices.Clone(path), strconv.Itoa(i)))
		ok = ok && fine
		values = append(values, v)
	}
	return values, ok
}

func (r reader) at(n *yaml.Node) string {
	if n.Line == 0 {
		return r.file
	}
	return r.file + ":" + strconv.Itoa(n.Line)
}

func (r reader) wrong(n *yaml.Node, path []string, want string) (any, bool) {
	r.wrongType(r.at(n), path, want, nodeKind(n))
	return nil, false
}

// nodeKind returns the id of the name of a node's kind, and shows nothing of its value, which may be a secret.
func nodeKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "config/a-section"
	case yaml.SequenceNode:
		return "config/is-list"
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	switch n.ShortTag() {
	case "!!bool":
		return "config/is-switch"
	case "!!int", "!!float":
		return "config/a-number"
	case "!!null":
		return "config/is-nothing"
	}
	return "config/a-text"
}

// keyInTree returns the key that a name is kept under: Device-Ids have one spelling.
func keyInTree(parents []string, name string) string {
	if len(parents) == 1 && parents[0] == "devices" {
		return identity.Canonical(name)
	}
	return name
}

// freeNames returns the type of what has a free name in a section: in a map, and
// in a section that has a map beside its keys. nil: every key is known.
func freeNames(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("koanf") == remain {
			return f.Type.Elem()
		}
	}
	return nil
}

// remain is the tag of the map that takes the free names of a section.
const remain = ",remain"

// keyFields returns the fields of a section that have keys, those of its embedded
// groups among them.
func keyFields(section reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(section), func(f reflect.StructField) bool {
		return f.Anonymous || !f.IsExported() || f.Tag.Get("koanf") == "-" || f.Tag.Get("koanf") == remain
	})
}

// childNames lists the keys of a section, or nil for a map of free names.
func childNames(t reflect.Type) []string {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range keyFields(t) {
		names = append(names, f.Tag.Get("koanf"))
	}
	return names
}

func childType(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Struct {
		for _, f := range keyFields(t) {
			if f.Tag.Get("koanf") == name {
				return f.Type, true
			}
		}
	}
	free := freeNames(t)
	return free, free != nil
}

func (r reader) scalar(n *yaml.Node, t reflect.Type, path []string) (any, bool) {
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode {
		tag = ""
	}
	switch t.Kind() {
	case reflect.String:
		if tag == "" || tag == "!!bool" || tag == "!!null" {
			return r.wrong(n, path, "config/a-text")
		}
		return n.Value, true // a number is taken as it is written
	case reflect.Bool:
		if b, err := strconv.ParseBool(n.Value); err == nil && tag == "!!bool" {
			return b, true
		}
		return r.wrong(n, path, "config/a-switch")
	case reflect.Int:
		var i int
		if tag != "!!int" || n.Decode(&i) != nil {
			return r.wrong(n, path, "config/a-integer")
		}
		return i, true
	case reflect.Float64:
		var f float64
		if tag != "!!int" && tag != "!!float" || n.Decode(&f) != nil {
			return r.wrong(n, path, "config/a-number")
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			r.wrongType(r.at(n), path, "config/a-number", n.Value)
			return nil, false
		}
		return f, true
	default:
		return r.wrong(n, path, t.String())
	}
}

func (r reader) duration(n *yaml.Node, path []string) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		return r.wrong(n, path, "config/a-time")
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		r.wrongType(r.at(n), path, "config/a-duration", strconv.Quote(n.Value))
		return nil, false
	}
	return d.String(), true
}

// voices reads one voice name for all languages, or one for each.
func (r reader) voices(n *yaml.Node, path []string) (any, bool) {
	if n.Kind == yaml.ScalarNode {
		v, ok := r.scalar(n, reflect.TypeFor[string](), path)
		return map[string]any{"": v, "zh": v, "en": v}, ok
	}
	if n.Kind != yaml.MappingNode {
		return r.wrong(n, path, "config/a-voices")
	}
	read, ok := r.mapping(n, reflect.TypeFor[map[string]string](), path)
	tree, ok2 := read.(map[string]any)
	if !ok || !ok2 {
		return read, ok
	}
	voices := make(map[string]any, len(tree))
	for tag, voice := range tree {
		full := append(slices.Clone(path), tag)
		lang, err := text.ParseLang(tag)
		if err != nil {
			r.add(r.places[strings.Join(full, keySeparator)], keyName(full)+": ", "config/language", tag, text.NearestLang(tag))
			r.hole(path)
			ok = false
			continue
		}
		r.places[strings.Join(append(slices.Clone(path), string(lang)), keySeparator)] = r.places[strings.Join(full, keySeparator)]
		voices[string(lang)] = voice
	}
	return voices, ok
}
