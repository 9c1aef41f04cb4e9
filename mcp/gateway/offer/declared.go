package offer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/schema"
	"xiaozhi/mcp/secret"
)

// checked returns the tool with its request compiled.
func (t HTTPTool) checked(ctx context.Context, from secret.Sources) (HTTPTool, error) {
	if strings.HasPrefix(t.stream(), "device-") {
		return t, errors.New("the streams device-… are those of devices")
	}
	if t.Kind != "" && t.Kind != mcp.Control && t.Kind != mcp.Query {
		return t, fmt.Errorf("kind: %q is neither control nor query", string(t.Kind))
	}
	var err error
	if t.page, err = t.Request.compile(ctx, from); err != nil {
		return t, err
	}
	t.page.result, t.Timeout = t.Result, cmp.Or(max(0, t.Timeout), pageTime)
	if t.Schema != nil {
		if _, ok := t.Schema["type"]; !ok {
			t.Schema["type"] = "object"
		}
		if t.schema, err = rawjson.Marshal(t.Schema); err != nil {
			return t, fmt.Errorf("schema: %w", err)
		}
	}
	return t, (&catalog.Part{}).AddTool(t.outward())
}

// stream is the group of a tool, "" for one with a bare name.
func (t HTTPTool) stream() string {
	if stream, _, grouped := strings.Cut(t.Name, "."); grouped {
		return stream
	}
	return ""
}

// hints are what the file says of what the tool does.
func (t HTTPTool) hints() mcp.Annotations {
	hints := mcp.Annotations{ReadOnly: &t.ReadOnly}
	if t.Destructive {
		hints.Destructive = &t.Destructive
	}
	return hints
}

// outward is the tool as others are offered it.
func (t HTTPTool) outward() catalog.Tool {
	return catalog.Tool{
		Source: mcp.SourceFile, Stream: t.stream(), Name: strings.TrimPrefix(t.Name, t.stream()+"."), Description: t.Description, Schema: t.schema,
		Timeout: t.Timeout, Annotations: t.hints(), Run: t.page.run,
	}
}

// inward is the tool as conversations are offered it.
func (t HTTPTool) inward() mcp.Tool {
	kept := t.schema
	if kept == nil {
		kept = json.RawMessage(schema.Empty)
	}
	return mcp.Tool{
		Source: mcp.SourceFile, Stream: t.stream(), Name: t.Name, Description: t.Description, Schema: kept, Origin: mcp.Local,
		Timeout: t.Timeout, Annotations: t.hints(), Kind: t.Kind,
	}
}
