package gateway

import (
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// oldMessage is a message without JSON-RPC, whose type says what is wanted. A
// message with one of the last five members is JSON-RPC, though it may be broken.
type oldMessage struct {
	Type      json.RawMessage `json:"type"`
	RequestID json.RawMessage `json:"requestId"`
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`

	JSONRPC json.RawMessage `json:"jsonrpc"`
	Method  json.RawMessage `json:"method"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// readOld reads a message that is meant to be an older one: an object without
// jsonrpc that has a type or a requestId, or nothing of JSON-RPC.
func readOld(data []byte) (m oldMessage, old bool) {
	if deep(data) || len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &m) != nil || m.JSONRPC != nil {
		return m, false
	}
	return m, m.Type != nil || m.RequestID != nil || m.Method == nil && m.ID == nil && m.Result == nil && m.Error == nil
}

// stringOf returns the text that raw holds; "" if it holds anything else.
func stringOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// oldTools, oldResult and oldError are the answers to older messages.
type oldTools struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Tools     []restTool      `json:"tools"`
}

type oldResult struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Result    oldContent      `json:"result"`
}

type oldContent struct {
	Content []sdk.Content `json:"content"`
	IsError bool          `json:"isError"`
}

type oldError struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Error     restProblem     `json:"error"`
}
