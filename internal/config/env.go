package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// envPrefix begins the names of variables that are settings.
const envPrefix = "XIAOZHI_"

// keyFileVariable, after the prefix, is the short name of store.key_file.
const keyFileVariable = "KEY_FILE"

// transform returns the path and the value of a variable, and "" for one that is no
// setting: two underscores for one level, commas in lists, case ignored. It is the
// TransformFunc of the provider env.
func (l *loader) transform(name, value string) (string, any) {
	rest, ours := strings.CutPrefix(strings.ToUpper(name), envPrefix)
	if !ours {
		return "", nil
	}
	if rest == keyFileVariable {
		rest = "STORE__KEY_FILE"
	}
	if t, known := childType(configType(), strings.ToLower(rest)); !strings.Contains(rest, "__") && (!known || t.Kind() != reflect.Slice) {
		// Orchestrators set names such as XIAOZHI_PORT by themselves.
		l.warnings = append(l.warnings, Warning("environment variable "+name+" is no setting (a setting is written XIAOZHI_SERVER__LISTEN or XIAOZHI_ASR)"))
		return "", nil
	}
	path, t, ok := l.find(name, strings.Split(strings.ToLower(rest), "__"))
	if !ok {
		return "", nil
	}
	reader := reader{name, l.findings}
	node, err := envNode(value, t)
	if err != nil {
		l.add(name, "", "config/not-yaml", err.Error())
		return "", nil
	}
	v, ok := reader.read(node, t, path)
	if !ok {
		return "", nil
	}
	l.take(v, path)
	return strings.Join(path, keySeparator), v
}

// find matches the parts of a variable's name with keys, and with names that
// the files use, whatever their case.
func (l *loader) find(variable string, parts []string) ([]string, reflect.Type, bool) {
	t, path := configType(), []string{}
	for _, part := range parts {
		if freeNames(t) != nil {
			part = l.existing(path, part)
		}
		for _, name := range childNames(t) { // keys such as mcpServers
			if strings.EqualFold(name, part) {
				part = name
			}
		}
		child, known := childType(t, part)
		if !known || part == "" {
			l.unknownKey(variable, path, part, childNames(t))
			l.hole(path)
			return nil, nil, false
		}
		path, t = append(path, part), child
	}
	return path, t, true
}

func (l *loader) existing(path []string, name string) string {
	for _, known := range l.k.MapKeys(strings.Join(path, keySeparator)) {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return name
}

// envNode returns a variable's value as the YAML node of the same meaning.
func envNode(value string, t reflect.Type) (*yaml.Node, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: item})
			}
		}
		return n, nil
	case reflect.Map, reflect.Interface, reflect.Struct:
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(value), &doc); err != nil {
			return nil, err
		}
		if len(doc.Content) == 0 {
			return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, nil
		}
		withoutLines(doc.Content[0])
		return doc.Content[0], nil
	case reflect.String:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(value)}, nil
	}
}

// withoutLines forgets line numbers, which mean nothing in a variable.
func withoutLines(n *yaml.Node) {
	n.Line = 0
	for _, c := range n.Content {
		withoutLines(c)
	}
}

// expander puts the values of environment variables in the place of ${NAME}
// and ${NAME:-value}.
type expander struct {
	env      map[string]string
	variable *regexp.Regexp // matches ${NAME} and ${NAME:-value}
	*findings
}

func newExpander(environ []string, found *findings) expander {
	x := expander{map[string]string{}, regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`), found}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			x.env[name] = value // the last of a name counts
		}
	}
	return x
}

// expand returns a tree of settings with all variables replaced.
func (x expander) expand(v any, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		tree := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			tree[name] = x.expand(v[name], append(slices.Clone(path), name))
		}
		return tree
	case []any:
		list := make([]any, 0, len(v))
		for i, child := range v {
			list = append(list, x.expand(child, append(slices.Clone(path), strconv.Itoa(i))))
		}
		return list
	case string:
		return x.text(v, path)
	default:
		return v
	}
}

// text expands one text. A variable that is not set makes a secret empty and is a
// problem anywhere else.
func (x expander) text(text string, path []string) string {
	lost := false
	text = x.variable.ReplaceAllStringFunc(text, func(found string) string {
		parts := x.variable.FindStringSubmatch(found)
		value, set := x.env[parts[1]]
		switch {
		case value != "":
			return value
		case parts[2] != "":
			return strings.TrimPrefix(parts[2], ":-")
		case !isSecret(path) && !set:
			x.add(x.place(path...), "", "config/unset", keyName(path), parts[1])
		case isSecret(path):
			lost = true
			secret := strings.Join(path, keySeparator)
			x.unset[secret] = append(x.unset[secret], parts[1])
		}
		return ""
	})
	if lost {
		return ""
	}
	return text
}
