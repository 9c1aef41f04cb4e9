package mcp

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

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
		return "[" + v.MIMEType + " image, " + strconv.Itoa(len(v.Data)) + " bytes]"
	case []any: // blocks of a result; pictures must not be spelled out
		if HasImage(v) {
			return textOfBlocks(v)
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
	for _, block := range blocks {
		if _, ok := block.(Image); ok {
			return true
		}
	}
	return false
}

func textOfBlocks(blocks []any) string {
	texts := make([]string, len(blocks))
	for i, block := range blocks {
		texts[i] = TextOf(block)
	}
	return strings.Join(texts, "\n")
}
