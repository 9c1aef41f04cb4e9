package offer

import (
	"context"
	"encoding/json"
	"slices"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// devices makes the parts of the catalog that devices offer.
type devices struct {
	Devices
	states     func(id string) (map[string]map[string]any, bool) // nil: not offered
	transcript func(id string) ([]Line, bool)                    // nil: not offered
	warn       func(message, tool string, err error)
}

func devicesOf(o Options, warn func(message, tool string, err error)) *devices {
	return &devices{o.Devices, o.States, o.Transcript, warn}
}

// part returns what a device offers now; nil if it is not connected.
func (x *devices) part(id string) *catalog.Part {
	offers, ok := x.Offers(id)
	if !ok {
		return nil
	}
	stream := catalog.StreamOf(id)
	p := &catalog.Part{}
	p.AddStreams(stream)
	for _, o := range offers {
		if !o.Tool.OfDevice() {
			continue
		}
		if err := p.AddTool(x.tool(id, stream, o)); err != nil {
			x.warn("tool is not offered outward", catalog.JoinName(stream, o.Tool.Name), err)
		}
	}
	x.addResources(p, id)
	return p
}

// tool returns a tool of a device. A name that MCP does not allow is replaced by
// the one that models know.
func (x *devices) tool(id, stream string, o router.Offer) catalog.Tool {
	bare := o.Tool.Name
	if catalog.CheckName(catalog.JoinName(stream, bare)) != nil {
		bare = o.LLMName
	}
	schema := o.Tool.Schema
	if catalog.CheckSchema(schema) != nil {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	name := o.Tool.Name // not all of o, which the closure would keep
	return catalog.Tool{
		Stream: stream, Name: bare, Description: o.Tool.Description, Schema: schema, Annotations: o.Tool.Annotations, Timeout: deviceTime, Foreign: true,
		Do: func(ctx context.Context, c catalog.Call) catalog.Outcome {
			return onDevice(ctx, x.Devices, id, name, true, c)
		},
	}
}

// onDevice runs a tool by the router of a device, as a call of its model would be:
// its own tool, or one of this server that works on it.
func onDevice(ctx context.Context, devices Devices, id, name string, own bool, c catalog.Call) catalog.Outcome {
	failure := func(id string, args ...any) catalog.Outcome {
		return catalog.Outcome{Response: mcp.ActionResponse{Action: mcp.ActionTypeError, Result: catalog.CallerFrom(ctx).Say(id, args...)}}
	}
	offers, ok := devices.Offers(id)
	if !ok {
		return failure("gateway/device-gone-id", id)
	}
	i := slices.IndexFunc(offers, func(o router.Offer) bool { return o.Tool.Name == name && o.Tool.OfDevice() == own })
	if i < 0 {
		return failure("gateway/device-without", catalog.StreamOf(id))
	}
	response, invalid := devices.Call(ctx, id, mcp.Call{ID: c.ID, Name: offers[i].LLMName, Arguments: c.Arguments, Language: c.Language})
	return catalog.Outcome{Response: response, Invalid: invalid}
}
