package device

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"xiaozhi/mcp/rawjson"
)

// callResult is a tools/call result in the one shape that the SDK always decodes.
type callResult struct {
	Meta    map[string]json.RawMessage `json:"_meta,omitempty"`
	Content []block                    `json:"content"`
	IsError bool                       `json:"isError"`
}

// block is a text block or an image block.
type block struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"` // of a text block: never nil, may be empty
	MIMEType string  `json:"mimeType,omitempty"`
	Data     string  `json:"data,omitempty"` // standard base64
}

func textBlock(text string) block { return block{Type: "text", Text: &text} }

// repairCall makes a tools/call result of whatever the device sent as one: a
// proper result, a bare value, or an object of its own design, which becomes the
// text of one block. raw must be valid JSON.
func repairCall(raw json.RawMessage) (result json.RawMessage, fixes []string) {
	raw = bytes.TrimSpace(raw)
	out := callResult{Content: []block{}}
	var fields map[string]json.RawMessage
	switch {
	case !rawjson.Present(raw):
	case json.Unmarshal(raw, &fields) != nil:
		fixes = append(fixes, "bare result")
		out.Content = append(out.Content, textBlock(rawjson.Text(raw)))
	default:
		out.IsError = string(fields["isError"]) == "true" || string(fields["isError"]) == `"true"`
		out.Meta = repairMeta(fields)
		out.Content, fixes = repairContent(raw, fields)
	}
	result, err := json.Marshal(out)
	if err != nil { // a raw member that is no JSON; the caller promised that there is none
		return json.RawMessage(`{"content":[]}`), append(fixes, "result")
	}
	return result, fixes
}

// repairMeta joins _meta and the metadata member of other dialects. _meta wins.
func repairMeta(fields map[string]json.RawMessage) map[string]json.RawMessage {
	var meta, own map[string]json.RawMessage
	if json.Unmarshal(fields["metadata"], &meta) != nil || meta == nil {
		meta = make(map[string]json.RawMessage)
	}
	if json.Unmarshal(fields["_meta"], &own) == nil {
		maps.Copy(meta, own)
	}
	return meta
}

func repairContent(raw json.RawMessage, fields map[string]json.RawMessage) (content []block, fixes []string) {
	content = []block{}
	var items []json.RawMessage
	switch c := fields["content"]; {
	case !rawjson.Present(c):
		if text := contentless(raw, fields); text != "" {
			return append(content, textBlock(text)), append(fixes, "content")
		}
		return content, fixes
	case json.Unmarshal(c, &items) != nil:
		items, fixes = []json.RawMessage{c}, append(fixes, "content")
	}
	if len(items) > maxBlocks {
		items, fixes = items[:maxBlocks], append(fixes, "too many blocks")
	}
	for _, item := range items {
		b, ok := repairBlock(item)
		if !ok {
			fixes = append(fixes, "content block")
		}
		content = append(content, b)
	}
	return content, fixes
}

// contentless is the text of a result that has no content: its structured
// content, or all of it if it has members that MCP does not know.
func contentless(raw json.RawMessage, fields map[string]json.RawMessage) string {
	if s := fields["structuredContent"]; rawjson.Present(s) {
		return rawjson.Text(s)
	}
	for name := range fields {
		if !slices.Contains([]string{"content", "isError", "_meta", "metadata", "structuredContent", "resultType"}, name) {
			return rawjson.Text(raw)
		}
	}
	return ""
}

// repairBlock makes a text or an image block of item; ok is false when it was
// neither in proper form.
func repairBlock(item json.RawMessage) (b block, ok bool) {
	item = bytes.TrimSpace(item)
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil || fields == nil {
		return textBlock(rawjson.Text(item)), false
	}
	text, isText := fields["text"], bytes.HasPrefix(fields["text"], []byte{'"'})
	switch kind := rawjson.Text(fields["type"]); {
	case kind == "image":
		return repairImage(item, fields)
	case kind == "text" || isText:
		return textBlock(rawjson.Text(text)), isText && kind == "text"
	}
	return textBlock(rawjson.Text(item)), false
}

// repairImage reads a standard image block, or the firmware's, whose image
// member is a string that holds a standard block as JSON (docs/protocol.md 5.4).
func repairImage(item json.RawMessage, fields map[string]json.RawMessage) (b block, ok bool) {
	ok = true
	if inner := fields["image"]; rawjson.Present(inner) {
		ok = false
		var unwrapped map[string]json.RawMessage
		if json.Unmarshal([]byte(rawjson.Text(inner)), &unwrapped) == nil && unwrapped != nil {
			fields = unwrapped
		}
	}
	data := rawjson.Text(fields["data"])
	if data == "" {
		return textBlock(rawjson.Text(item)), false
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil { // perhaps without padding, or in the URL alphabet
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(data, "=\r\n"))
		decoded, err := base64.RawStdEncoding.DecodeString(plain)
		if err != nil {
			return textBlock("[an image whose data is not base64]"), false
		}
		ok, data = false, base64.StdEncoding.EncodeToString(decoded)
	}
	b = block{Type: "image", MIMEType: rawjson.Text(fields["mimeType"]), Data: data}
	if b.MIMEType == "" {
		b.MIMEType, ok = "image/jpeg", false // the only kind that firmware makes
	}
	return b, ok
}
