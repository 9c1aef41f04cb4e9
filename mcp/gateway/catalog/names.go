package catalog

import (
	"fmt"
	"strings"

	"xiaozhi/internal/text"
)

// maxToolName bounds the length of a name, with its stream (MCP 2025-11-25).
const maxToolName = 128

// JoinName returns the full name of a tool.
func JoinName(stream, bare string) string {
	if stream == "" {
		return bare
	}
	return stream + "." + bare
}

// CheckName returns what is wrong with the full name of a tool (MCP 2025-11-25).
func CheckName(name string) error {
	if name == "" || len(name) > maxToolName {
		return fmt.Errorf("tool name %.40q… must have 1 to %d characters", name, maxToolName)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !IsPlain(r) && r != '.' }) {
		return fmt.Errorf("tool name %q may hold letters, digits, _, - and . only", name)
	}
	return nil
}

// IsPlain reports whether r may stand in the name of a stream.
func IsPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// StreamOf returns the stream of a device: device-<id>, the Device-Id in lower
// case, a MAC without its separators, other signs as "-".
func StreamOf(deviceID string) string {
	id := strings.ToLower(deviceID)
	if hex := strings.NewReplacer(":", "", "-", "").Replace(id); len(hex) == 12 && strings.Trim(hex, "0123456789abcdef") == "" {
		id = hex
	}
	return "device-" + PlainStream(id)
}

// PlainStream returns a name of a stream with plain signs only, others as "-".
func PlainStream(name string) string {
	return strings.Map(func(r rune) rune {
		if IsPlain(r) {
			return r
		}
		return '-'
	}, name)
}

// Clip returns what a client wrote, cut to what an error should show.
func Clip(s string) string { return text.Cut(s, 64) }

// OneLine returns the text of an error without line breaks.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
