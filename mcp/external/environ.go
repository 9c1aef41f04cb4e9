package external

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inherited reports whether a variable of ours goes to the programs we start.
// Everything else stays here: it may be a secret.
func inherited(name string) bool {
	if strings.HasPrefix(name, "LC_") {
		return true
	}
	switch strings.ToUpper(name) {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM",
		"TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_CACHE":
		return true
	}
	return false
}

// environment returns the environment of a program: the inherited part of ours, and above it
// what its config says.
func environment(ours []string, own map[string]string) []string {
	var out []string
	for _, variable := range ours {
		name, _, ok := strings.Cut(variable, "=")
		if _, set := own[name]; ok && !set && inherited(name) {
			out = append(out, variable)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		out = append(out, name+"="+own[name])
	}
	return out
}

// program finds a command in the PATH of the environment that it will get.
// A name with a slash, and one that is not found, stay as they are.
func program(command string, environ []string) string {
	if strings.ContainsRune(command, filepath.Separator) {
		return command
	}
	for _, variable := range environ {
		path, ok := strings.CutPrefix(variable, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, command)
			if info, err := os.Stat(file); dir != "" && err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return file
			}
		}
	}
	return command
}
