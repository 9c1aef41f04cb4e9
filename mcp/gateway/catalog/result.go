package catalog

import (
	"encoding/json"
	"fmt"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

// CodeFailed is the code of a tool that ran and failed.
const CodeFailed = "EXECUTION_FAILED"

// Limits of one result.
const (
	maxResultText  = 256 << 10 // bytes of one text; the rest is cut
	maxResultImage = 8 << 20   // bytes of one picture; a larger one is only named
)

// contentOf returns a tool's outcome as MCP has it: a failure is an error result,
// and so is the envelope of one.
func contentOf(r mcp.ActionResponse) *sdk.CallToolResult {
	o := r.Outcome("")
	if envelope := failedEnvelope(o.Value); envelope != nil {
		o.Failed, o.Blocks = true, []any{mcp.TextOf(envelope)}
	}
	out := &sdk.CallToolResult{Content: []sdk.Content{}, IsError: o.Failed}
	for _, block := range o.Blocks {
		switch block := block.(type) {
		case mcp.Image:
			out.Content = append(out.Content, pictureOf(block))
		case string:
			out.Content = append(out.Content, textBlock(block))
		}
	}
	return out
}

func pictureOf(image mcp.Image) sdk.Content {
	if len(image.Data) > maxResultImage {
		return textBlock(fmt.Sprintf("[%s image, %d bytes: over the limit of %d]", image.MIMEType, len(image.Data), maxResultImage))
	}
	return &sdk.ImageContent{MIMEType: image.MIMEType, Data: image.Data}
}

// textBlock returns a text as a block, cut to the limit.
func textBlock(s string) *sdk.TextContent {
	return &sdk.TextContent{Text: text.Shorten(s, maxResultText)}
}

// failed returns a result that says why there is none.
func failed(why string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{textBlock(why)}, IsError: true}
}

// failedEnvelope returns what a tool says of its own failure,
// {"success":false,"error":…}, with the error as {code,message} whether it was that
// or a text. It returns nil for any other value.
func failedEnvelope(value any) map[string]any {
	switch value.(type) {
	case nil, string, bool, int, int64, float64, []any, mcp.Image:
		return nil
	}
	envelope, ok := value.(map[string]any)
	if ok {
		envelope = maps.Clone(envelope)
	} else {
		data, err := json.Marshal(value)
		if err != nil || json.Unmarshal(data, &envelope) != nil {
			return nil
		}
	}
	if success, is := envelope["success"].(bool); !is || success {
		return nil
	}
	if message, is := envelope["error"].(string); is {
		envelope["error"] = map[string]any{"code": CodeFailed, "message": message}
	}
	return envelope
}
