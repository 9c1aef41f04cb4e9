package config

import (
	"net/url"
	"reflect"
	"slices"
	"strings"

	"xiaozhi/internal/nearby"
	"xiaozhi/internal/timezone"
	"xiaozhi/providers"
)

// localFiles are the settings of services that name files of this machine: one is loaded as a program, one is sent away.
var localFiles = []string{"library", "folder", "prompt_wav"}

// Changeable reports whether the key at a path, or anything below it, can be set while the server runs. Files of this
// machine cannot be named so, and neither can what the server is built of: its addresses, its store, who may do what.
func Changeable(path []string) bool {
	if len(path) == 0 || slices.ContainsFunc(path, func(name string) bool { return strings.HasSuffix(name, fileSuffix) }) {
		return false
	}
	switch path[0] {
	case "providers":
		return len(path) < 3 || !slices.Contains(localFiles, path[2])
	case "asr", "llm", "tts", "vision", "realtime", "embed", "voiceprint", "voice", "agent", "recording", "reminders", "quiet":
		return true
	case "server":
		return len(path) == 2 && path[1] == "timezone"
	case "store":
		return len(path) == 2 && path[1] == "keep_days"
	case "tools":
		return len(path) > 1 && !slices.Contains([]string{"music", "home", "endpoint", "offer"}, path[1])
	}
	return false
}

// Choices lists what people are offered for the key at a path, and says what holds where it is empty; nothing: it is any text.
func Choices(path []string) (all []string, blank string) {
	if slices.Equal(path, []string{"server", "timezone"}) {
		return timezone.Names(), timezone.Machine().String()
	}
	return nil, ""
}

// strayed reports secrets that would go elsewhere than where they were meant to go: they stand in a file or a variable,
// and the console sets the address that they are sent to. Those that are sealed have their own lock.
func (l *loader) strayed(c *Config) {
	eachSection(reflect.ValueOf(c).Elem(), nil, func(section reflect.Value, path []string) {
		where := l.redirected(path)
		if where == "" {
			return
		}
		eachSecret(section, func(key []string, s providers.Secret) providers.Secret {
			full := slices.Concat(path, key)
			if from := l.secretOrigin(full); s != "" && !isSealed(s) && from.Layer != LayerConsole && from.Layer != LayerDefault {
				l.addAt(full, from.Place, keyName(full)+": ", "config/secret-strays", where)
			}
			return s
		})
	})
}

// redirected names the key by which the console says where the secrets of a section go; "": none does.
func (l *loader) redirected(section []string) string {
	if len(section) == 0 {
		return ""
	}
	for _, name := range []string{"base_url", "type", "proxy", "url", "command"} {
		full := append(slices.Clone(section), name)
		if l.origins[strings.Join(full, keySeparator)].Layer == LayerConsole {
			return keyName(full)
		}
	}
	return ""
}

// secretOrigin says where a secret was set, or the file that it stands in.
func (fs *findings) secretOrigin(path []string) Origin {
	in := slices.Clone(path)
	for i := len(in) - 1; i >= max(len(in)-2, 0); i-- { // of a map of secrets the name follows
		in[i] += fileSuffix
		if o, ok := fs.origins[strings.Join(in, keySeparator)]; ok {
			return o
		}
		in[i] = path[i]
	}
	return fs.origins[strings.Join(path, keySeparator)]
}

// Typed reports whether people have said in the console where a service is, or how it is reached.
func (c *Config) Typed(name string) bool {
	for _, key := range []string{"base_url", "type", "region", "proxy"} {
		if c.OriginOf([]string{"providers", name, key}).Layer == LayerConsole {
			return true
		}
	}
	return false
}

// checkCommands reports programs that the console would have this server run.
func (ch checker) checkCommands(c *Config) {
	for name := range c.Tools.External.MCPServers {
		for _, key := range []string{"command", "args", "env", "cwd"} {
			at := []string{"tools", "external", "mcpServers", name, key}
			for leaf, from := range ch.origins {
				whole := strings.Join(at, keySeparator)
				if from.Layer == LayerConsole && !c.Console.Commands && (leaf == whole || strings.HasPrefix(leaf, whole+keySeparator)) {
					ch.bad(at, "config/console-command")
				}
			}
		}
	}
}

// checkNear reports services that the console would have at an address where machines find their own settings.
func checkNear(ch checker, c *Config) {
	for name, p := range c.Providers {
		for field, address := range map[string]string{"base_url": p.BaseURL, "proxy": p.Proxy} {
			at := []string{"providers", name, field}
			if u, err := url.Parse(address); err == nil && ch.origins[strings.Join(at, keySeparator)].Layer == LayerConsole && nearby.IsDoorHost(u.Hostname()) {
				ch.bad(at, "services/link-local")
			}
		}
	}
}
