package mcp

import (
	"bytes"
	"encoding/json"
)

// PlainJSON is json.Marshal without escapes for HTML: devices show text as it
// is, and every byte counts on theirs. The error is that of encoding/json.
func PlainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
