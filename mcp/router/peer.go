package router

import (
	"context"
	"encoding/json"
	"slices"

	"xiaozhi/mcp"
)

// Peer is the device of this router. callID is the id of the call that it is
// needed for; it names the calls to the device in the log.
func (rt *Router) Peer(callID string) mcp.Peer { return peer{rt, callID} }

type peer struct {
	router *Router
	callID string
}

func (p peer) Tools() []mcp.Tool {
	var tools []mcp.Tool
	for _, o := range p.router.placed() {
		if o.Tool.OfDevice() {
			tools = append(tools, o.Tool)
		}
	}
	return tools
}

func (p peer) Call(ctx context.Context, name string, arguments map[string]any) mcp.ActionResponse {
	placed := p.router.placed()
	i := slices.IndexFunc(placed, func(o placedOffer) bool { return o.Tool.OfDevice() && o.Tool.Name == name })
	if i < 0 {
		return mcp.NoPeer{}.Call(ctx, name, arguments)
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "encode arguments: " + err.Error()}
	}
	prepared, refused := p.router.Prepare(mcp.Call{ID: p.callID + "/" + name, Name: placed[i].LLMName, Arguments: string(text)})
	if refused != nil {
		return *refused
	}
	return p.router.Run(ctx, prepared)
}
