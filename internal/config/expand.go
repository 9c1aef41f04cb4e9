package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/providers"
)

// expander puts the values of environment variables in the place of ${NAME}
// and ${NAME:-value}.
type expander struct {
	env      map[string]string
	variable *regexp.Regexp // matches ${NAME} and ${NAME:-value}
	*findings
}

// newExpander makes an expander for an environment.
func newExpander(environ []string, found *findings) expander {
	return expander{environMap(environ), regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`), found}
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
			owner := strings.Join(path[:secretOwner(path)], keySeparator)
			x.unset[owner] = append(x.unset[owner], parts[1])
		}
		return ""
	})
	if lost {
		return ""
	}
	return text
}

// secretOwner returns the number of members of a secret's path that name its owner,
// such as providers.NAME.
func secretOwner(path []string) int {
	if path[0] == "tools" && path[1] == "external" {
		return 4 // one of mcpServers
	}
	return 2
}

// isSecret reports whether the key at path holds a secret.
func isSecret(path []string) bool {
	t := configType()
	for _, name := range path {
		if t.Kind() == reflect.Slice { // name is a number
			t = t.Elem()
			continue
		}
		child, ok := childType(t, name)
		if !ok {
			return false
		}
		t = child
	}
	return t == reflect.TypeFor[providers.Secret]()
}

// secretFiles reads the secrets that are kept in files of their own. A file
// counts before a value that is set beside it.
func (l *loader) secretFiles(c *Config) {
	if c.Auth.TokenFile != "" {
		c.Auth.Token = l.secretFile(c.Auth.TokenFile, "auth", "token_file")
	}
	for i, t := range c.MCP.Tokens {
		if t.TokenFile != "" {
			c.MCP.Tokens[i].Token = l.secretFile(t.TokenFile, "mcp", "tokens", strconv.Itoa(i), "token_file")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		if p.APIKeyFile == "" {
			continue
		}
		p.APIKey = l.secretFile(p.APIKeyFile, "providers", name, "api_key_file")
		p.MissingEnv = nil
		c.Providers[name] = p
	}
}

func (l *loader) secretFile(file string, path ...string) providers.Secret {
	data, err := readFile(file)
	if err != nil {
		l.add(l.place(path...), "", "config/secret-not-read", keyName(path), err)
		return ""
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		l.add(l.place(path...), "", "config/secret-empty", keyName(path), file)
	}
	return providers.Secret(secret)
}
