package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/schema"
)

// page is one page of tools/list. The SDK's own decoding loses what we promise
// to keep (the schema as it came, the audience), so the transport keeps the
// page and hands the SDK only the cursor.
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
	tool.Description = rawjson.Text(w.Description)
	tool.Origin, tool.Source = mcp.Remote, "device"
	tool.Annotations = repairAnnotations(w.Annotations)
	if schema := bytes.TrimSpace(w.InputSchema); len(schema) > 0 && schema[0] == '{' {
		tool.Schema = bytes.Clone(schema)
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
