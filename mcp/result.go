package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Image is a picture that a tool returned.
type Image struct {
	MIMEType string
	Data     []byte
}

// ResultText is the outcome of a call as text for the history: Result, or
// Response where there is no result. Whatever is no text is shown as JSON; nil
// is "". It never panics, however odd the payload is.
func ResultText(r ActionResponse) string {
	if r.Result == nil {
		return TextOf(r.Response)
	}
	return TextOf(r.Result)
}

// TextOf returns a value as text: a string as it is, an [Image] as its type and
// size, everything else as JSON. It never panics.
func TextOf(value any) (text string) {
	defer func() {
		if recover() != nil { // a payload's own MarshalJSON or Error
			text = fmt.Sprintf("[%T]", value)
		}
	}()
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.RawMessage:
		return string(v)
	case error:
		return v.Error()
	case Image:
		return fmt.Sprintf("[%s image, %d bytes]", v.MIMEType, len(v.Data))
	case []any: // blocks of a result; pictures must not be spelled out
		if HasImage(v) {
			texts := make([]string, len(v))
			for i, block := range v {
				texts[i] = TextOf(block)
			}
			return strings.Join(texts, "\n")
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("[%T]", value)
	}
	return string(data)
}

// HasImage reports whether one of the blocks of a result is an [Image].
func HasImage(blocks []any) bool {
	return slices.ContainsFunc(blocks, func(block any) bool { _, ok := block.(Image); return ok })
}
