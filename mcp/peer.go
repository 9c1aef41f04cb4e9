package mcp

import (
	"context"
	"encoding/json"
	"slices"

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

// Peer is the device of this toolbox. callID is the id of the call that it is
// needed for; it names the calls to the device in the log.
func (t *Toolbox) Peer(callID string) Peer { return peer{t, callID} }

type peer struct {
	toolbox *Toolbox
	callID  string
}

func (p peer) Tools() []Tool {
	var tools []Tool
	for _, o := range p.toolbox.placed() {
		if queued(o.Tool) {
			tools = append(tools, o.Tool)
		}
	}
	return tools
}

func (p peer) Call(ctx context.Context, name string, arguments map[string]any) ActionResponse {
	placed := p.toolbox.placed()
	i := slices.IndexFunc(placed, func(o placedOffer) bool { return queued(o.Tool) && o.Tool.Name == name })
	if i < 0 {
		return noPeer{}.Call(ctx, name, arguments)
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return ActionResponse{Action: ActionTypeError, Result: "encode arguments: " + err.Error()}
	}
	prepared, refused := p.toolbox.Prepare(Call{ID: p.callID + "/" + name, Name: placed[i].LLMName, Arguments: string(text)})
	if refused != nil {
		return *refused
	}
	return p.toolbox.Run(ctx, prepared)
}

// noPeer stands for the device where there is none.
type noPeer struct{}

func (noPeer) Tools() []Tool { return nil }

func (noPeer) Call(_ context.Context, name string, _ map[string]any) ActionResponse {
	return ActionResponse{Action: ActionTypeNotFound, Result: "the device has no tool named " + text.Shorten(name, 128)}
}

type peerKey struct{}

// WithPeer returns a context that carries the device to the tools called under it.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerFrom is the device that ctx carries, or one without tools. Every call of
// a Toolbox carries its device.
func PeerFrom(ctx context.Context) Peer {
	if p, ok := ctx.Value(peerKey{}).(Peer); ok {
		return p
	}
	return noPeer{}
}

// dropUnfit leaves out the tools that are of no use beside the device's tools.
func dropUnfit(offers []placedOffer) []placedOffer {
	var device []Tool
	conditional := false
	for _, o := range offers {
		conditional = conditional || o.Tool.When != nil
		if queued(o.Tool) {
			device = append(device, o.Tool)
		}
	}
	if !conditional {
		return offers
	}
	fit := offers[:0]
	for _, o := range offers {
		if o.Tool.When == nil || o.Tool.When(device) {
			fit = append(fit, o)
		}
	}
	return fit
}
