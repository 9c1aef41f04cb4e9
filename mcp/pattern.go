package mcp

import (
	"path"
	"slices"
	"strings"
)

// The sources of tools that patterns can begin with, beside external:NAME.
const (
	SourceLocal    = "local"  // this server
	SourceDevice   = "device" // the device, by MCP
	SourceLight    = "light"  // the device, by registration
	SourceIoT      = "iot"    // things of the device
	SourceFile     = "file"   // the files of data/tools
	SourceHome     = "homeassistant"
	SourceGateway  = "gateway"   // the gateway itself, and what a program registers with it
	SourceExternal = "external:" // other people's servers; the name follows
)

// Fits returns the first of the patterns of settings that fits a tool by one of its
// names: that of its source, that of models, the one it is listed by outward. Patterns
// are those of [path.Match], but case does not count and * crosses "/". One that begins
// with a source, such as external:maps/* or device/self.*, fits tools of that source only.
func Fits(patterns []string, source string, names ...string) (pattern string, ok bool) {
	for _, pattern := range patterns {
		p, bySource := fold(pattern), ofSource(pattern)
		if slices.ContainsFunc(names, func(name string) bool {
			if bySource {
				name = source + "/" + name
			}
			fits, err := path.Match(p, fold(name))
			return fits && err == nil
		}) {
			return pattern, true
		}
	}
	return "", false
}

// FitsTool is [Fits] for a tool. One of a server that has dialled in is of two sources: of
// that server, and of the token that has let it in, whatever number the server was given.
func FitsTool(patterns []string, t Tool, names ...string) (pattern string, ok bool) {
	names = append([]string{t.Name}, names...)
	pattern, ok = Fits(patterns, t.Source, names...)
	if !ok && t.Entry != "" {
		pattern, ok = Fits(patterns, SourceExternal+t.Entry, names...)
	}
	return pattern, ok
}

// FitsServer reports whether one of the patterns of settings fits a tool by its server: one
// that begins with a source, such as external:maps/find*, by the source and the tool's
// names, any other by the server's name alone, whatever its tools are called.
func FitsServer(patterns []string, t Tool) bool {
	var servers, tools []string
	for _, pattern := range patterns {
		if ofSource(pattern) {
			tools = append(tools, pattern)
		} else {
			servers = append(servers, pattern)
		}
	}
	names := []string{strings.TrimPrefix(t.Source, SourceExternal), t.Stream}
	if t.Entry != "" {
		names = append(names, t.Entry)
	}
	_, server := Fits(servers, t.Source, names...)
	_, tool := FitsTool(tools, t, FunctionName(t.Name))
	return server || tool
}

// fold makes names comparable: without case, and with no sign at which * would stop.
func fold(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.ToUpper(name)), "/", "\x00")
}

// ofSource reports whether a pattern begins with a source.
func ofSource(pattern string) bool {
	source, _, found := strings.Cut(strings.ToLower(pattern), "/")
	return found && (strings.HasPrefix(source, SourceExternal) ||
		slices.Contains([]string{SourceLocal, SourceDevice, SourceLight, SourceIoT, SourceFile, SourceHome, SourceGateway}, source))
}
