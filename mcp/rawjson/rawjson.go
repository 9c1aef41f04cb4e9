// Package rawjson reads JSON that strangers wrote: it checks the size and depth of a text before it
// is parsed, and reads single members without trusting their type. All functions are pure.
package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// Marshal is json.Marshal without escapes for HTML: devices show text as it
// is, and every byte counts on theirs. The error is that of encoding/json.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Limits on a text, for [CheckSize].
const (
	MaxSize  = 1 << 20 // bytes of one JSON-RPC payload from a device
	maxDepth = 64      // nesting of objects and arrays in a payload
)

// CheckSize is an error when payload is larger or nested deeper than any honest
// message is. It runs before the payload is parsed.
func CheckSize(payload []byte) error {
	if len(payload) > MaxSize {
		return fmt.Errorf("payload of %d bytes is over the limit of %d", len(payload), MaxSize)
	}
	if Depth(payload) > maxDepth {
		return fmt.Errorf("nested too deeply: more than %d levels", maxDepth)
	}
	return nil
}

// Depth counts how deep the arrays and objects of a JSON text nest, without parsing it. Signs in
// strings do not count; broken JSON gets a number that is good enough.
func Depth(data []byte) int {
	deepest, depth := 0, 0
	inString, escaped := false, false
	for _, b := range data {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = b == '\\'
			inString = b != '"'
		case b == '"':
			inString = true
		case b == '{' || b == '[':
			depth++
			deepest = max(deepest, depth)
		case b == '}' || b == ']':
			depth--
		}
	}
	return deepest
}

// Present reports whether a member is there and not null.
func Present(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null"
}

// String is the text of a JSON string; false for anything else, absence included.
func String(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, true
}

// Text is the text of a JSON string, and the JSON itself of anything else;
// "" for null and for nothing.
func Text(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if !Present(raw) {
		return ""
	}
	if text, ok := String(raw); ok {
		return text
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// Number is n as an int64 if it is a whole number that fits, else as a float64,
// or as text if it fits neither.
func Number(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return n.String()
	}
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int64(f)
	}
	return f
}
