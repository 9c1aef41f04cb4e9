package external

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// greeter answers initialize itself, as often as it is asked: an endpoint that
// stands between many devices and one tool server shakes hands anew for each of
// them, over the same socket, which the SDK takes for a mistake.
type greeter struct {
	*link
	info *sdk.Implementation
}

// Connect makes greeter an sdk.Transport: it is its own connection.
func (g *greeter) Connect(ctx context.Context) (sdk.Connection, error) {
	if _, err := g.link.Connect(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// Read gives everything but the handshake.
func (g *greeter) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := g.link.Read(ctx)
		r, ok := m.(*jsonrpc.Request)
		switch {
		case err != nil || !ok:
			return m, err
		case r.Method == "initialize" && r.IsCall():
			if err := g.greet(ctx, r); err != nil {
				return nil, err
			}
		case r.Method == "notifications/initialized":
		default:
			return m, nil
		}
	}
}

func (g *greeter) greet(ctx context.Context, r *jsonrpc.Request) error {
	var asked sdk.InitializeParams
	_ = json.Unmarshal(r.Params, &asked) // an odd request gets the oldest revision
	result, err := json.Marshal(&sdk.InitializeResult{
		ProtocolVersion: agreed(asked.ProtocolVersion), ServerInfo: g.info,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	if err != nil {
		return err
	}
	return g.Write(ctx, &jsonrpc.Response{ID: r.ID, Result: result})
}

// agreed is the revision for one that asks for version.
func agreed(version string) string {
	switch version {
	case "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25":
		return version
	}
	return oldestVersion
}
