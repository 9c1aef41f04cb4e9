package offer

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
)

// addList adds the list of the devices and the templates of their resources.
func (x *devices) addList(p *catalog.Part) {
	addJSON(p, "device", uriDevices, "devices", catalog.Both("gateway/about-devices"), func(ctx context.Context) (any, error) {
		out := DeviceList{[]Device{}}
		for _, d := range x.List() {
			if catalog.CallerFrom(ctx).Reaches(d.ID) {
				out.Devices = append(out.Devices, d)
			}
		}
		return out, nil
	})
	x.addTemplates(p)
}

// addTemplates adds the resources that each device has as templates. They are for
// finding out; what can be read is listed.
func (x *devices) addTemplates(p *catalog.Part) {
	ids := func(shown func(string) bool) []string {
		var out []string
		for _, d := range x.List() {
			if shown(d.ID) {
				out = append(out, shortID(d.ID))
			}
		}
		return out
	}
	parts := []struct{ about, name, description string }{{partStatus, "device status", catalog.Both("gateway/about-device-status")}}
	if x.states != nil {
		parts = append(parts, struct{ about, name, description string }{partStates, "device states", catalog.Both("gateway/about-device-states")})
	}
	if x.transcript != nil {
		parts = append(parts, struct{ about, name, description string }{partTranscript, "transcript", catalog.Both("gateway/about-device-transcript")})
	}
	for _, t := range parts {
		def := &sdk.ResourceTemplate{URITemplate: uriDevices + "/{id}" + t.about, Name: t.name, Description: t.description, MIMEType: mimeJSON}
		p.AddTemplate("device", def, func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return nil, catalog.UnknownResource(catalog.CallerFrom(ctx), r.Params.URI) // those that are there are resources of their own
		}, map[string]catalog.Values{"id": ids})
	}
}

// deviceStatus is the content of xiaozhi://devices/ID/status.
type deviceStatus struct {
	Device
	Status any `json:"status,omitempty"` // as the device tells it itself
}

// transcript is the content of xiaozhi://devices/ID/transcript.
type transcript struct {
	Device string `json:"device"`
	Lines  []Line `json:"lines"`
}

// thingStates is the content of xiaozhi://devices/ID/states.
type thingStates struct {
	Device string                    `json:"device"`
	Things map[string]map[string]any `json:"things"`
}

// addResources adds what is known of one device.
func (x *devices) addResources(p *catalog.Part, id string) {
	add := func(about, name, description string, of func(ctx context.Context) (any, bool)) {
		addJSON(p, catalog.StreamOf(id), deviceURI(id, about), shortID(id)+name, description, func(ctx context.Context) (any, error) {
			if value, connected := of(ctx); connected {
				return value, nil
			}
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: catalog.CallerFrom(ctx).Say("gateway/device-gone")}
		})
	}
	add(partStatus, " status", catalog.Both("gateway/about-status"), func(ctx context.Context) (any, bool) {
		for _, d := range x.List() {
			if d.ID == id {
				return deviceStatus{d, x.askStatus(ctx, id)}, true
			}
		}
		return nil, false
	})
	if x.states != nil {
		add(partStates, " states", catalog.Both("gateway/about-states"), func(context.Context) (any, bool) {
			things, ok := x.states(id)
			if things == nil {
				things = map[string]map[string]any{}
			}
			return thingStates{id, things}, ok
		})
	}
	if x.transcript != nil {
		add(partTranscript, " transcript", catalog.Both("gateway/about-transcript"), func(context.Context) (any, bool) {
			lines, ok := x.transcript(id)
			if lines == nil {
				lines = []Line{}
			}
			return transcript{id, lines}, ok
		})
	}
}

// statusTime bounds the time that a device may take to tell its status.
const statusTime = 5 * time.Second

// askStatus returns what a device tells of itself, by its own tool; nil if it has none.
func (x *devices) askStatus(ctx context.Context, id string) any {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	offers, _ := x.Offers(id)
	const name = "self.get_device_status"
	for _, o := range offers {
		if o.Tool.Name != name || !o.Tool.OfDevice() || o.Consent {
			continue
		}
		r, _ := x.Call(ctx, id, mcp.Call{ID: "status", Name: o.LLMName, Language: catalog.Language(ctx)})
		text := mcp.ResultText(r)
		if r.Action.Failed() {
			return nil
		}
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
		return text
	}
	return nil
}
