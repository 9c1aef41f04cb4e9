package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"xiaozhi/providers"
)

// sealedPrefix begins a secret that is kept sealed elsewhere; its name follows.
const sealedPrefix = "sealed:"

// isSealed reports whether a secret is kept sealed, so that its value is not known yet.
func isSealed(s providers.Secret) bool { return strings.HasPrefix(string(s), sealedPrefix) }

// sealedSecret is a setting whose value is kept sealed.
type sealedSecret struct {
	name  string   // by which it is kept
	path  []string // of the setting
	place string   // where that was set
}

// SecretUse says where a secret goes, and so for what it may be opened.
type SecretUse struct {
	Kind SecretKind
	At   string // the address or the program; "" of an address: the usual one of its provider
}

// SecretKind is a kind of place that a secret goes to.
type SecretKind string

// The kinds of [SecretUse].
const (
	SecretSent    SecretKind = "sent"    // to the address At
	SecretGiven   SecretKind = "given"   // to the program At, in its environment
	SecretShown   SecretKind = "shown"   // to this server, by others: it goes nowhere
	SecretAddress SecretKind = "address" // it is an address itself, and goes to its host
)

// sealedSecrets lists the secrets that are kept sealed, by their paths; nil if there are none.
func (fs *findings) sealedSecrets(c *Config) (all []sealedSecret) {
	eachSection(reflect.ValueOf(c).Elem(), nil, func(section reflect.Value, path []string) {
		eachSecret(section, func(key []string, s providers.Secret) providers.Secret {
			if name, ok := strings.CutPrefix(string(s), sealedPrefix); ok {
				full := slices.Concat(path, key)
				all = append(all, sealedSecret{name, full, fs.place(full...)})
			}
			return s
		})
	})
	slices.SortFunc(all, func(a, b sealedSecret) int { return slices.Compare(a.path, b.path) })
	return all
}

// Sealed reports whether any secret is kept sealed, so that [Config.Unseal] is needed.
func (c *Config) Sealed() bool { return len(c.around.sealed) > 0 }

// Unseal puts the secrets that are kept sealed into their place, and checks what could not be checked without them. The
// error joins everything that is wrong, each an [*Error]. open must not tell the secret in its errors.
func (c *Config) Unseal(open func(name string, use SecretUse) (string, error)) error {
	found := newFindings()
	for _, addresses := range []bool{true, false} { // they say where the others go
		values := map[string]providers.Secret{}
		for _, s := range c.around.sealed {
			use, path := c.use(s.path), strings.Join(s.path, keySeparator)
			if found.places[path] = s.place; (use.Kind == SecretAddress) != addresses {
				continue
			}
			value, err := open(s.name, use)
			if err != nil {
				found.addError(&Error{Place: s.place, Path: s.path, English: keyName(s.path) + ": " + err.Error()})
			}
			values[path] = providers.Secret(value)
		}
		c.put(values)
	}
	c.around.sealed = nil
	if len(found.problems) == 0 {
		ch := checker{findings: found}
		ch.checkAuth(c.Auth)
		ch.checkTokens(c.MCP)
		ch.checkMCP(c.Tools, c.MCP)
	}
	return errors.Join(found.problems...)
}

// put sets secrets by their joined paths.
func (c *Config) put(values map[string]providers.Secret) {
	eachSection(reflect.ValueOf(c).Elem(), nil, func(section reflect.Value, path []string) {
		eachSecret(section, func(key []string, s providers.Secret) providers.Secret {
			if value, ok := values[strings.Join(slices.Concat(path, key), keySeparator)]; ok {
				return value
			}
			return s
		})
	})
}

// use says where the secret at a path goes.
func (c *Config) use(path []string) SecretUse {
	key := path[len(path)-1]
	switch {
	case path[0] == "providers":
		return SecretUse{SecretSent, c.Providers[path[1]].address()}
	case path[0] == "memory":
		return SecretUse{SecretSent, c.Memory.BaseURL}
	case path[0] == "auth", path[0] == "mcp", path[1] == "endpoint":
		return SecretUse{Kind: SecretShown}
	case path[1] == "weather":
		return SecretUse{SecretSent, c.Tools.Weather.URL}
	case path[1] == "news":
		return SecretUse{SecretSent, c.Tools.News.URL}
	case path[1] == "search":
		return SecretUse{SecretSent, c.Tools.Search.address()}
	case path[1] == "home":
		return SecretUse{SecretSent, c.Tools.Home.URL}
	case path[1] == "external" && path[4] == "env":
		return SecretUse{SecretGiven, c.Tools.External.MCPServers[path[3]].Command}
	case path[1] == "external" && (path[4] == "headers" || path[4] == "client_secret"):
		return SecretUse{SecretSent, string(c.Tools.External.MCPServers[path[3]].URL)}
	case key == "url":
		return SecretUse{Kind: SecretAddress}
	}
	return SecretUse{}
}
