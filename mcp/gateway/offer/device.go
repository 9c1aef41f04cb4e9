package offer

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// devicePart returns what a device offers now; nil if it is not connected.
func (f *Follower) devicePart(id string) *catalog.Part {
	offers, ok := f.o.Devices.Offers(id)
	if !ok {
		return nil
	}
	stream := catalog.StreamOf(id)
	p := &catalog.Part{}
	p.AddStreams(stream)
	for _, o := range offers {
		if o.Tool.OfDevice() {
			f.addTool(p, deviceTool(f.o.Devices, id, stream, o))
		}
	}
	for _, a := range f.o.abouts() {
		addJSON(p, stream, deviceURI(id, a.part), shortID(id)+" "+a.part, catalog.Both(a.one), func(ctx context.Context) (any, error) {
			if value, connected := a.of(ctx, id); connected {
				return value, nil
			}
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: catalog.CallerFrom(ctx).Say("gateway/device-gone")}
		})
	}
	return p
}

// deviceTool returns a tool of a device. A name that MCP does not allow is replaced by
// the one that models know.
func deviceTool(devices Devices, id, stream string, o router.Offer) catalog.Tool {
	bare := o.Tool.Name
	if catalog.CheckName(catalog.JoinName(stream, bare)) != nil {
		bare = o.LLMName
	}
	schema := o.Tool.Schema
	if catalog.CheckSchema(schema) != nil {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	source, name := o.Tool.Source, o.Tool.Name // not all of o, which the closure would keep
	return catalog.Tool{
		Stream: stream, Name: bare, Description: o.Tool.Description, Schema: schema, Annotations: o.Tool.Annotations, Timeout: timeOn(o), Foreign: true,
		Source: o.Tool.Source, Routed: true,
		Do: func(ctx context.Context, c catalog.Call) catalog.Outcome {
			return onDevice(ctx, devices, id, source, name, c)
		},
	}
}

// onDevice runs a tool of a source by the router of a device, as a call of its model
// would be: its own tool, or one of this server that works on it. Nobody else's of that
// name is run where that one is hidden.
func onDevice(ctx context.Context, devices Devices, id, source, name string, c catalog.Call) catalog.Outcome {
	failure := func(id string, args ...any) catalog.Outcome {
		return catalog.Outcome{Response: mcp.ActionResponse{Action: mcp.ActionTypeError, Result: catalog.CallerFrom(ctx).Say(id, args...)}}
	}
	offers, ok := devices.Offers(id)
	if !ok {
		return failure("gateway/device-gone-id", id)
	}
	i := slices.IndexFunc(offers, func(o router.Offer) bool { return o.Tool.Name == name && o.Tool.Source == source })
	if i < 0 {
		return failure("gateway/device-without", catalog.StreamOf(id))
	}
	response, invalid := devices.Call(ctx, id, mcp.Call{ID: c.ID, Name: offers[i].LLMName, Arguments: c.Arguments, Language: c.Language})
	return catalog.Outcome{Response: response, Invalid: invalid}
}

// The parts of what is known of a device.
const (
	partStatus     = "status"
	partStates     = "states"
	partTranscript = "transcript"
)

// about is one part of what is known of each device, a resource in JSON.
type about struct {
	part, template string // the latter is the name of its template
	all, one       string // what the template and the resource of one device say of themselves: ids of messages
	of             func(ctx context.Context, id string) (value any, connected bool)
}

func (o Options) abouts() []about {
	out := []about{{
		partStatus, "device status", "gateway/about-device-status", "gateway/about-status",
		func(ctx context.Context, id string) (any, bool) {
			list := o.Devices.List()
			i := slices.IndexFunc(list, func(d Device) bool { return d.ID == id })
			if i < 0 {
				return nil, false
			}
			return struct {
				Device
				Status any `json:"status,omitempty"` // as the device tells it itself
			}{list[i], askStatus(ctx, o.Devices, id)}, true
		},
	}}
	if o.States != nil {
		out = append(out, about{
			partStates, "device states", "gateway/about-device-states", "gateway/about-states",
			func(_ context.Context, id string) (any, bool) {
				things, ok := o.States(id)
				if things == nil {
					things = map[string]map[string]any{}
				}
				return struct {
					Device string                    `json:"device"`
					Things map[string]map[string]any `json:"things"`
				}{id, things}, ok
			},
		})
	}
	if o.Transcript != nil {
		out = append(out, about{
			partTranscript, "transcript", "gateway/about-device-transcript", "gateway/about-transcript",
			func(_ context.Context, id string) (any, bool) {
				lines, ok := o.Transcript(id)
				return struct {
					Device string `json:"device"`
					Lines  []Line `json:"lines"`
				}{id, append([]Line{}, lines...)}, ok
			},
		})
	}
	return out
}

// addDevices adds the list of the devices, and the resources that each of them has as
// templates. Those are for finding out; what can be read is listed.
func (o Options) addDevices(p *catalog.Part) {
	addJSON(p, "device", uriDevices, "devices", catalog.Both("gateway/about-devices"), func(ctx context.Context) (any, error) {
		unseen := func(d Device) bool { return !catalog.CallerFrom(ctx).Reaches(d.ID) }
		return DeviceList{slices.DeleteFunc(append([]Device{}, o.Devices.List()...), unseen)}, nil
	})
	ids := func(shown func(string) bool) []string {
		var out []string
		for _, d := range o.Devices.List() {
			if shown(d.ID) {
				out = append(out, shortID(d.ID))
			}
		}
		return out
	}
	for _, a := range o.abouts() {
		def := &sdk.ResourceTemplate{
			URITemplate: uriDevices + "/{id}/" + a.part, Name: a.template,
			Description: catalog.Both(a.all), MIMEType: mimeJSON,
		}
		p.AddTemplate("device", def, func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return nil, catalog.UnknownResource(catalog.CallerFrom(ctx), r.Params.URI) // those that are there are resources of their own
		}, map[string]catalog.Values{"id": ids})
	}
}

// statusTime bounds the time that a device may take to tell its status.
const statusTime = 5 * time.Second

// askStatus returns what a device tells of itself, by its own tool; nil if it has none.
func askStatus(ctx context.Context, devices Devices, id string) any {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	offers, _ := devices.Offers(id)
	i := slices.IndexFunc(offers, func(o router.Offer) bool {
		return o.Tool.Name == "self.get_device_status" && o.Tool.OfDevice() && !o.Consent
	})
	if i < 0 {
		return nil
	}
	r, _ := devices.Call(ctx, id, mcp.Call{ID: "status", Name: offers[i].LLMName, Language: catalog.CallerFrom(ctx).Language})
	if r.Action.Failed() {
		return nil
	}
	text := mcp.ResultText(r)
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}
