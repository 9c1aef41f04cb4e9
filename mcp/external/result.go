package external

import (
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// resultOf is a tool's result as CallTool returns it: text, one Image, a []any
// of both in the server's order, or any JSON value where there is only that.
func resultOf(r *sdk.CallToolResult) any {
	if len(r.Content) == 0 && r.StructuredContent != nil {
		return r.StructuredContent
	}
	var blocks []any
	images := false
	for _, content := range r.Content {
		switch block := blockOf(content).(type) {
		case nil:
		case mcp.Image:
			images = true
			blocks = append(blocks, block)
		default:
			blocks = append(blocks, block)
		}
	}
	switch {
	case !images:
		return textOf(r)
	case len(blocks) == 1:
		return blocks[0]
	}
	return blocks
}

// blockOf is one block as a string or an Image; nil for what says nothing.
func blockOf(content sdk.Content) any {
	switch c := content.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return mcp.Image{MIMEType: c.MIMEType, Data: c.Data}
	case *sdk.AudioContent:
		return fmt.Sprintf("[%s sound, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return strings.TrimSpace(c.Name + " " + c.URI)
	case *sdk.EmbeddedResource:
		switch {
		case c.Resource == nil:
			return nil
		case c.Resource.Text != "":
			return c.Resource.Text
		case strings.HasPrefix(c.Resource.MIMEType, "image/"):
			return mcp.Image{MIMEType: c.Resource.MIMEType, Data: c.Resource.Blob}
		}
		return fmt.Sprintf("[%s %s, %d bytes]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
	}
	return nil
}

// textOf joins the texts of a result, each on lines of its own.
func textOf(r *sdk.CallToolResult) string {
	var out []string
	for _, content := range r.Content {
		if text, ok := blockOf(content).(string); ok {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}
