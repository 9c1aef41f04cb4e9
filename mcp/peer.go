package mcp

import (
	"context"

	"xiaozhi/internal/text"
)

// Peer is the device of a conversation as a tool of this server sees it. All
// methods may be called at the same time.
type Peer interface {
	// Tools are the device's own tools that are offered to the model, IoT ones
	// among them, under the names that the device gave them.
	Tools() []Tool
	// Call runs one of them through the router, hence in its turn, checked and
	// limited like a call of the model, and waits for its outcome.
	Call(ctx context.Context, name string, arguments map[string]any) ActionResponse
}

// NoPeer stands for the device where there is none.
type NoPeer struct{}

// Tools returns none.
func (NoPeer) Tools() []Tool { return nil }

// Call returns that there is no such tool.
func (NoPeer) Call(_ context.Context, name string, _ map[string]any) ActionResponse {
	return ActionResponse{Action: ActionTypeNotFound, Result: "the device has no tool named " + text.Shorten(name, 128)}
}

type peerKey struct{}

// WithPeer returns a context that carries the device to the tools called under it.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerFrom is the device that ctx carries, or one without tools. Every call of
// a router carries its device.
func PeerFrom(ctx context.Context) Peer {
	if p, ok := ctx.Value(peerKey{}).(Peer); ok {
		return p
	}
	return NoPeer{}
}
