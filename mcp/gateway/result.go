package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// Limits of one result.
const (
	maxResultText  = 256 << 10 // bytes of one text; the rest is cut
	maxResultImage = 8 << 20   // bytes of one picture; a larger one is only named
)

// contentOf is a tool's outcome as MCP has it: Response and ReqLLM give their
// text, None nothing, Error and NotFound are errors (design.md section 10).
func contentOf(r mcp.ActionResponse) *sdk.CallToolResult {
	out := &sdk.CallToolResult{Content: []sdk.Content{}}
	switch r.Action {
	case mcp.ActionTypeNone:
		return out
	case mcp.ActionTypeResponse:
		if r.Response != nil {
			r.Result = r.Response
		}
	case mcp.ActionTypeError, mcp.ActionTypeNotFound:
		out.IsError = true
	case mcp.ActionTypeReqLLM, mcp.ActionTypeCallHandler:
	}
	if envelope := failedEnvelope(r.Result); envelope != nil {
		out.IsError, r.Result = true, envelope
	}
	out.Content = append(out.Content, blocksOf(r.Result)...)
	return out
}

// blocksOf are the blocks of a result's value.
func blocksOf(value any) []sdk.Content {
	if image, ok := value.(mcp.Image); ok {
		return []sdk.Content{pictureOf(image)}
	}
	list, ok := value.([]any)
	if !ok || !slices.ContainsFunc(list, func(b any) bool { _, ok := b.(mcp.Image); return ok }) {
		return []sdk.Content{textBlock(mcp.ResultText(mcp.ActionResponse{Result: value}))}
	}
	var out []sdk.Content
	for _, block := range list {
		if image, ok := block.(mcp.Image); ok {
			out = append(out, pictureOf(image))
			continue
		}
		out = append(out, textBlock(mcp.ResultText(mcp.ActionResponse{Result: block})))
	}
	return out
}

func pictureOf(image mcp.Image) sdk.Content {
	if len(image.Data) > maxResultImage {
		return textBlock(fmt.Sprintf("[%s image, %d bytes: over the limit of %d]", image.MIMEType, len(image.Data), maxResultImage))
	}
	return &sdk.ImageContent{MIMEType: image.MIMEType, Data: image.Data}
}

// textBlock is a text, cut to the limit at the end of a rune.
func textBlock(text string) *sdk.TextContent {
	if len(text) > maxResultText {
		end := maxResultText
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + fmt.Sprintf("… [cut: %d bytes in all]", len(text))
	}
	return &sdk.TextContent{Text: text}
}

// failed is a result that says why there is none.
func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{textBlock(text)}, IsError: true}
}

// failedEnvelope is what a tool says of its own failure in the envelope of seed
// 002, {"success":false,"error":…}, with the error as {code,message} whether it
// was that or a text. nil: it says no such thing.
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
		envelope["error"] = map[string]any{"code": codeFailed, "message": message}
	}
	return envelope
}
