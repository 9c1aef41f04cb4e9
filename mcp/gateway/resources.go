package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// The resources of this server. A device's are below uriDevices/ID, the id as in
// its stream.
const (
	uriDevices = "xiaozhi://devices"
	uriConfig  = "xiaozhi://config"
	uriLog     = "xiaozhi://log"

	partStatus     = "/status"
	partStates     = "/states"
	partTranscript = "/transcript"
)

const mimeJSON = "application/json"

// shortID is a device as it stands in streams and URIs.
func shortID(id string) string { return strings.TrimPrefix(StreamOf(id), "device-") }

func deviceURI(id, about string) string { return uriDevices + "/" + shortID(id) + about }

// deviceURIs are the resources of a device that change without being read. The
// transcript is told by TranscriptChanged.
func deviceURIs(id string) []string {
	return []string{deviceURI(id, partStatus), deviceURI(id, partStates)}
}

// jsonResource is a resource whose content is the JSON of what of returns.
func jsonResource(stream, uri, name, description string, of func(ctx context.Context) (any, error)) *resource {
	return &resource{stream, &sdk.Resource{URI: uri, Name: name, Description: description, MIMEType: mimeJSON}, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		value, err := of(ctx)
		if err != nil {
			return nil, err
		}
		data, err := rawjson.Marshal(value)
		if err != nil {
			return nil, err
		}
		return textResource(uri, mimeJSON, string(data)), nil
	}}
}

func textResource(uri, mime, text string) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}
}

// addResources adds what is known of the server.
func (g *Gateway) addResources(p *part) {
	if g.options.Devices != nil {
		p.resources = append(p.resources, jsonResource("device", uriDevices, "devices", "已连接的设备 / the devices that are connected", func(ctx context.Context) (any, error) {
			out := deviceList{[]Device{}}
			for _, d := range g.options.Devices.List() {
				if callerFrom(ctx).reaches(d.ID) {
					out.Devices = append(out.Devices, d)
				}
			}
			return out, nil
		}))
		p.templates = append(p.templates, g.deviceTemplates()...)
	}
	if config := g.options.Config; config != nil {
		p.resources = append(p.resources, jsonResource("system", uriConfig, "config", "服务器设置（不含密钥） / the settings, without secrets", func(context.Context) (any, error) {
			return json.RawMessage(config()), nil
		}))
	}
	if tail := g.options.LogTail; tail != nil {
		p.resources = append(p.resources, &resource{
			"system", &sdk.Resource{URI: uriLog, Name: "log", Description: "最近的日志 / the last lines of the log", MIMEType: "text/plain"},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return textResource(uriLog, "text/plain", tail()), nil
			},
		})
	}
}

// deviceTemplates are the resources that each device has. They are for finding
// out; what can be read is listed.
func (g *Gateway) deviceTemplates() []*template {
	ids := func(shown func(string) bool) []string {
		var out []string
		for _, d := range g.options.Devices.List() {
			if shown(d.ID) {
				out = append(out, shortID(d.ID))
			}
		}
		return out
	}
	parts := []struct{ about, name, description string }{{partStatus, "device status", "设备状态 / the status of a device"}}
	if g.options.States != nil {
		parts = append(parts, struct{ about, name, description string }{partStates, "device states", "设备的物联网状态 / the states of a device's things"})
	}
	if g.options.Transcript != nil {
		parts = append(parts, struct{ about, name, description string }{partTranscript, "transcript", "本次会话的对话记录 / what was said in this session"})
	}
	var out []*template
	for _, t := range parts {
		out = append(out, &template{
			stream:   "device",
			def:      &sdk.ResourceTemplate{URITemplate: uriDevices + "/{id}" + t.about, Name: t.name, Description: t.description, MIMEType: mimeJSON},
			complete: map[string]values{"id": ids},
			read: func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return nil, unknownResource(contextLanguage(ctx), r.Params.URI) // those that are there are resources of their own
			},
		})
	}
	return out
}

// deviceStatus is what xiaozhi://devices/ID/status holds.
type deviceStatus struct {
	Device
	Status any `json:"status,omitempty"` // as the device tells it itself
}

// transcript is what xiaozhi://devices/ID/transcript holds.
type transcript struct {
	Device string `json:"device"`
	Lines  []Line `json:"lines"`
}

// thingStates is what xiaozhi://devices/ID/states holds.
type thingStates struct {
	Device string                    `json:"device"`
	Things map[string]map[string]any `json:"things"`
}

// addDeviceResources adds what is known of a device.
func (g *Gateway) addDeviceResources(p *part, id string) {
	stream := StreamOf(id)
	gone := func(ctx context.Context) error {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: say(contextLanguage(ctx), "设备没有连接", "the device is not connected")}
	}
	p.resources = append(p.resources, jsonResource(stream, deviceURI(id, partStatus), shortID(id)+" status", "设备状态 / status of the device", func(ctx context.Context) (any, error) {
		for _, d := range g.options.Devices.List() {
			if d.ID == id {
				return deviceStatus{d, g.askStatus(ctx, id)}, nil
			}
		}
		return nil, gone(ctx)
	}))
	if states := g.options.States; states != nil {
		p.resources = append(p.resources, jsonResource(stream, deviceURI(id, partStates), shortID(id)+" states", "物联网状态 / states of its things", func(ctx context.Context) (any, error) {
			things, ok := states(id)
			if !ok {
				return nil, gone(ctx)
			}
			if things == nil {
				things = map[string]map[string]any{}
			}
			return thingStates{id, things}, nil
		}))
	}
	if said := g.options.Transcript; said != nil {
		p.resources = append(p.resources, jsonResource(stream, deviceURI(id, partTranscript), shortID(id)+" transcript", "对话记录 / what was said", func(ctx context.Context) (any, error) {
			lines, ok := said(id)
			if !ok {
				return nil, gone(ctx)
			}
			if lines == nil {
				lines = []Line{}
			}
			return transcript{id, lines}, nil
		}))
	}
}

// statusTime is how long a device may take to tell its status.
const statusTime = 5 * time.Second

// askStatus is what a device tells of itself, by its own tool; nil if it has none.
func (g *Gateway) askStatus(ctx context.Context, id string) any {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	offers, _ := g.options.Devices.Offers(id)
	const name = "self.get_device_status"
	for _, o := range offers {
		if o.Tool.Name != name || !o.OfDevice() || o.Consent {
			continue
		}
		r, _ := g.options.Devices.Call(ctx, id, mcp.Call{ID: "status", Name: o.LLMName, Language: contextLanguage(ctx)})
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
