package device

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/schema"
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

// repairCall makes a tools/call result of what the device sent as one, valid JSON: a proper
// result, a bare value, or an object of its own design, which becomes the text of one block.
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

// page is one page of tools/list. The SDK's own decoding loses what we promise to keep (the schema
// as it came, the audience), so the transport keeps the page and hands the SDK only the cursor.
type page struct {
	tools []mcp.Tool
	next  string
}

// wireTool is a tool as a device lists it.
type wireTool struct {
	Name        json.RawMessage `json:"name"`
	Description json.RawMessage `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations"`
}

// repairList reads a page. Tools that cannot be used are left out and noted.
func repairList(raw json.RawMessage) (p page, fixes []string, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return p, nil, errors.New("the result of tools/list is no object")
	}
	if json.Unmarshal(fields["nextCursor"], &p.next) != nil {
		p.next = ""
	}
	var items []json.RawMessage
	if rawjson.Present(fields["tools"]) && json.Unmarshal(fields["tools"], &items) != nil {
		return p, nil, errors.New("the tools of tools/list are no array")
	}
	for i, item := range items {
		if len(p.tools) == mcp.MaxTools {
			fixes = append(fixes, "too many tools on a page")
			break
		}
		tool, fix := repairTool(item)
		if fix != "" {
			fixes = append(fixes, fmt.Sprintf("tools[%d] %s", i, fix))
		}
		if tool.Name != "" {
			p.tools = append(p.tools, tool)
		}
	}
	return p, fixes, nil
}

// repairTool reads one tool; its name is "" when it is to be left out.
func repairTool(raw json.RawMessage) (tool mcp.Tool, fix string) {
	var w wireTool
	if json.Unmarshal(raw, &w) != nil {
		return tool, "is no object"
	}
	if json.Unmarshal(w.Name, &tool.Name) != nil || tool.Name == "" {
		return mcp.Tool{}, "has no name"
	}
	if len(tool.Name) > mcp.MaxToolName {
		return mcp.Tool{}, "has a name that is too long"
	}
	tool.Description = text.Cut(rawjson.Text(w.Description), mcp.MaxDescription-len("…"))
	tool.Origin, tool.Source = mcp.Remote, "device"
	tool.Annotations = repairAnnotations(w.Annotations)
	given := bytes.TrimSpace(w.InputSchema)
	switch {
	case len(given) > schema.MaxSize:
		return mcp.Tool{}, fmt.Sprintf("has a schema of more than %d bytes", schema.MaxSize)
	case len(given) > 0 && given[0] == '{':
		tool.Schema = bytes.Clone(given)
		return tool, ""
	}
	tool.Schema = json.RawMessage(schema.Empty)
	return tool, "has no schema"
}

// repairAnnotations keeps those hints that have their proper type.
func repairAnnotations(raw json.RawMessage) mcp.Annotations {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return mcp.Annotations{}
	}
	a := mcp.Annotations{
		ReadOnly:    hint(fields["readOnlyHint"]),
		Destructive: hint(fields["destructiveHint"]),
		Idempotent:  hint(fields["idempotentHint"]),
	}
	if json.Unmarshal(fields["audience"], &a.Audience) != nil {
		a.Audience = nil
		if one := rawjson.Text(fields["audience"]); one != "" {
			a.Audience = []string{one}
		}
	}
	return a
}

func hint(raw json.RawMessage) *bool {
	var value bool
	if !rawjson.Present(raw) || json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return &value
}
