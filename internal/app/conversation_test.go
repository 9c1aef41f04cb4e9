package app

import (
	"context"
	"encoding/json"
	"testing"

	"xiaozhi/agent/feature/remote"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"

	"xiaozhi/internal/directory"
	"xiaozhi/mcp/router"
)

// oneTool is a device with a tool of that name.
type oneTool struct {
	mcp.Source
	name string
}

func (o oneTool) GetAvailableTools() []mcp.Tool {
	return []mcp.Tool{{Name: o.name, Schema: json.RawMessage(`{"type":"object"}`), Source: "device"}}
}

func (o oneTool) CallTool(context.Context, string, map[string]any) (any, error) { return o.name, nil }

// conversationOf is a conversation that is not held: a device with one tool.
func conversationOf(t *testing.T, o outside, id, tool string) *conversation {
	t.Helper()
	box := router.New(router.Options{}, oneTool{name: tool})
	t.Cleanup(box.Close)
	session := wire.Session{DeviceID: id, SessionID: "s", Name: "kitchen", Language: "en"}
	return &conversation{Device: remote.New(nil, id, box), devices: o.devices, info: directory.Info{Session: session}, tools: box}
}
