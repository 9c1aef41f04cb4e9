package config

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// envPrefix begins the names of variables that are settings.
const envPrefix = "XIAOZHI_"

// envReader turns environment variables into settings: two underscores for one
// level, commas in lists, case ignored.
type envReader struct{ loader *loader }

// transform returns the path and the value of a variable, and "" for one that is no
// setting. It is the TransformFunc of the provider env.
func (r envReader) transform(name, value string) (string, any) {
	rest, ours := strings.CutPrefix(strings.ToUpper(name), envPrefix)
	if !ours {
		return "", nil
	}
	if t, known := childType(configType(), strings.ToLower(rest)); !strings.Contains(rest, "__") && (!known || t.Kind() != reflect.Slice) {
		// Orchestrators set names such as XIAOZHI_PORT by themselves.
		r.loader.warnings = append(r.loader.warnings, Warning("environment variable "+name+" is no setting (a setting is written XIAOZHI_SERVER__LISTEN or XIAOZHI_ASR)"))
		return "", nil
	}
	path, t, ok := r.find(name, strings.Split(strings.ToLower(rest), "__"))
	if !ok {
		return "", nil
	}
	reader := reader{name, r.loader.findings}
	node, err := envNode(value, t)
	if err != nil {
		r.loader.add(name, "", "config/not-yaml", err.Error())
		return "", nil
	}
	v, ok := reader.read(node, t, path)
	if !ok {
		return "", nil
	}
	return strings.Join(path, keySeparator), v
}

// find matches the parts of a variable's name with keys, and with names that
// the files use, whatever their case.
func (r envReader) find(variable string, parts []string) ([]string, reflect.Type, bool) {
	t, path := configType(), []string{}
	for _, part := range parts {
		if t.Kind() == reflect.Map {
			part = r.existing(path, part)
		}
		for _, name := range childNames(t) { // keys such as mcpServers
			if strings.EqualFold(name, part) {
				part = name
			}
		}
		child, known := childType(t, part)
		if !known || part == "" {
			r.loader.unknownKey(variable, path, part, childNames(t))
			r.loader.hole(path)
			return nil, nil, false
		}
		path, t = append(path, part), child
	}
	return path, t, true
}

// existing returns a name as the layers below write it.
func (r envReader) existing(path []string, name string) string {
	for _, known := range r.loader.k.MapKeys(strings.Join(path, keySeparator)) {
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

// environMap returns an environment by name; the last of a name counts.
func environMap(environ []string) map[string]string {
	variables := make(map[string]string, len(environ))
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			variables[name] = value
		}
	}
	return variables
}
