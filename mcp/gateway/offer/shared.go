package offer

import (
	"context"
	"slices"
	"strings"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
)

// shared makes the part of the catalog that other servers offer.
type shared struct {
	list func() []mcp.Tool
	call func(ctx context.Context, source, name string, arguments map[string]any) (any, error)
	warn func(message, tool string, err error)
}

// part returns the tools of other servers.
func (x *shared) part() *catalog.Part {
	p := &catalog.Part{}
	for _, t := range x.list() {
		stream := t.Stream
		if slices.Contains(ownStreams(), stream) || strings.HasPrefix(stream, "device-") {
			stream = "server-" + stream
		}
		source := t.Source
		offered, err := sourceTool(plainStream(stream), t, func(ctx context.Context, name string, arguments map[string]any) (any, error) {
			return x.call(ctx, source, name, arguments)
		})
		offered.Foreign = true
		if err == nil {
			err = p.AddTool(offered)
		}
		if err != nil {
			x.warn("tool is not offered outward", t.Name, err)
		}
	}
	return p
}

// ownStreams returns the streams that no other server can have.
func ownStreams() []string {
	return []string{"", "system", "time", "util", "device", "info", "talk", "timer", "music", "prompts", "local"}
}

// plainStream returns a name of a stream with plain signs only.
func plainStream(name string) string {
	return strings.Map(func(r rune) rune {
		if catalog.IsPlain(r) {
			return r
		}
		return '-'
	}, name)
}
