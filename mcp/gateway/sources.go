package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/schema"
)

// localPart are this server's own tools. Those that need a device take its id.
func (g *Gateway) localPart() *part {
	p := &part{}
	for _, t := range g.options.Local.GetAvailableTools() {
		if t.NeedsDevice && g.options.Devices == nil {
			continue
		}
		stream := t.Stream
		if stream == "" {
			stream = "local"
		}
		var e *entry
		var err error
		if t.NeedsDevice {
			e, err = g.localDeviceTool(stream, t)
		} else {
			e, err = g.sourceTool(stream, t, g.options.Local.CallTool)
		}
		if err != nil {
			g.log.Warn("tool is not offered outward", "tool", t.Name, "source", t.Source, "err", err)
			continue
		}
		e.ours = true
		p.tools = append(p.tools, e)
	}
	return p
}

// sourceTool is a tool of a source that belongs to no device.
func (g *Gateway) sourceTool(stream string, t mcp.Tool, run func(ctx context.Context, name string, arguments map[string]any) (any, error)) (*entry, error) {
	e, err := newEntry(stream, t.Name, t.Description, t.Schema, t.Annotations)
	if err != nil {
		return nil, err
	}
	checker, err := schema.NewChecker(e.schema)
	if err != nil { // it stands for any object, as in the router
		if checker, err = schema.NewChecker(nil); err != nil {
			return nil, err
		}
	}
	e.run = checked(checker, func(ctx context.Context, arguments map[string]any) (any, error) { return run(ctx, t.Name, arguments) })
	return e, nil
}

// localDeviceTool is a tool of this server that works on a device.
func (g *Gateway) localDeviceTool(stream string, t mcp.Tool) (*entry, error) {
	schema, err := withDeviceID(t.Schema)
	if err != nil {
		return nil, err
	}
	e, err := newEntry(stream, t.Name, t.Description, schema, t.Annotations)
	if err != nil {
		return nil, err
	}
	e.limit = deviceTime
	e.run = func(ctx context.Context, c call) outcome {
		meant, rest, err := takeDeviceID(c.arguments)
		if err != nil {
			return outcome{invalid: err.Error()}
		}
		id, err := g.pick(ctx, meant)
		if err != nil {
			return outcome{invalid: err.Error()}
		}
		c.arguments = rest
		return g.onDevice(ctx, id, t.Name, false, c)
	}
	return e, nil
}

// deviceTime is how long a call may take that goes to a device: its router has
// limits of its own, and the user may have to be asked first.
const deviceTime = askTime + callTimeout

// withDeviceID is a schema with the argument device_id.
func withDeviceID(schema json.RawMessage) (json.RawMessage, error) {
	var fields, properties map[string]json.RawMessage
	if err := json.Unmarshal(schema, &fields); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if raw := fields["properties"]; raw != nil {
		if err := json.Unmarshal(raw, &properties); err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal([]byte("{"+deviceProperty+"}"), &own); err != nil {
		return nil, err
	}
	if properties == nil {
		properties = map[string]json.RawMessage{}
	}
	properties["device_id"] = own["device_id"]
	raw, err := rawjson.Marshal(properties)
	if err != nil {
		return nil, err
	}
	fields["properties"] = raw
	return rawjson.Marshal(fields)
}

// takeDeviceID takes the argument device_id out.
func takeDeviceID(arguments string) (id, rest string, err error) {
	if strings.TrimSpace(arguments) == "" {
		return "", "", nil
	}
	var fields map[string]json.RawMessage
	var inner string
	if json.Unmarshal([]byte(arguments), &inner) == nil { // as models write them, and the router takes them
		arguments = inner
	}
	if err := json.Unmarshal([]byte(arguments), &fields); err != nil {
		return "", "", fmt.Errorf("arguments are no JSON object: %w", err)
	}
	if raw, ok := fields["device_id"]; ok {
		if err := json.Unmarshal(raw, &id); err != nil {
			return "", "", fmt.Errorf("device_id is no text: %w", err)
		}
		delete(fields, "device_id")
	}
	out, err := rawjson.Marshal(fields)
	return id, string(out), err
}

// takeDevices makes the registry have what devices offer now, or that they have
// left: in one step, since each step costs as much as all that is offered.
func (g *Gateway) takeDevices(ids []string) {
	g.taking.Lock()
	defer g.taking.Unlock()
	parts := make(map[string]*part, len(ids))
	for _, id := range ids {
		parts["device:"+id] = g.devicePart(id)
	}
	g.registry.setChanged(parts)
}

// devicePart is what a device offers now; nil: it is not connected.
func (g *Gateway) devicePart(id string) *part {
	offers, ok := g.options.Devices.Offers(id)
	if !ok {
		return nil
	}
	stream := StreamOf(id)
	p := &part{streams: []string{stream}}
	for _, o := range offers {
		if !o.OfDevice() {
			continue
		}
		e, err := g.deviceTool(id, stream, o)
		if err != nil {
			g.warnOnce("tool is not offered outward", joinName(stream, o.Tool.Name), err)
			continue
		}
		p.tools = append(p.tools, e)
	}
	g.addDeviceResources(p, id)
	return p
}

// deviceTool is a tool of a device. A name that MCP does not allow is replaced
// by the one that models know.
func (g *Gateway) deviceTool(id, stream string, o router.Offer) (*entry, error) {
	bare := o.Tool.Name
	if checkName(joinName(stream, bare)) != nil {
		bare = o.LLMName
	}
	schema := o.Tool.Schema
	if checkSchema(schema) != nil {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	e, err := newEntry(stream, bare, o.Tool.Description, schema, o.Tool.Annotations)
	if err != nil {
		return nil, err
	}
	e.limit = deviceTime
	name := o.Tool.Name // not all of o, which the closure would keep
	e.run = func(ctx context.Context, c call) outcome { return g.onDevice(ctx, id, name, true, c) }
	return e, nil
}

// onDevice runs a tool by the router of a device, as a call of its model would
// be: its own tool, or one of this server that works on it.
func (g *Gateway) onDevice(ctx context.Context, id, name string, own bool, c call) outcome {
	failure := func(zh, en string) outcome {
		return outcome{response: mcp.ActionResponse{Action: mcp.ActionTypeError, Result: say(c.language, zh, en)}}
	}
	offers, ok := g.options.Devices.Offers(id)
	if !ok {
		return failure("设备没有连接: "+id, "the device is not connected: "+id)
	}
	i := slices.IndexFunc(offers, func(o router.Offer) bool { return o.Tool.Name == name && o.OfDevice() == own })
	if i < 0 {
		return failure("这台设备没有这个功能，请看 "+StreamOf(id)+" 里的工具", "this device does not do that; see the tools of "+StreamOf(id))
	}
	response, invalid := g.options.Devices.Call(ctx, id, mcp.Call{ID: c.id, Name: offers[i].LLMName, Arguments: c.arguments, Language: c.language})
	return outcome{response, invalid}
}

// ownStreams are the streams that no other server can have.
func ownStreams() []string {
	return []string{"", "system", "time", "util", "device", "info", "talk", "timer", "music", "prompts", "local"}
}

// refreshShared takes in the tools of other people's servers.
func (g *Gateway) refreshShared() {
	if g.options.Shared == nil {
		return
	}
	p := &part{}
	for _, t := range g.options.Shared() {
		stream := t.Stream
		if slices.Contains(ownStreams(), stream) || strings.HasPrefix(stream, "device-") {
			stream = "server-" + stream
		}
		source := t.Source
		e, err := g.sourceTool(plainStream(stream), t, func(ctx context.Context, name string, arguments map[string]any) (any, error) {
			return g.options.CallShared(ctx, source, name, arguments)
		})
		if err != nil {
			g.warnOnce("tool is not offered outward", t.Name, err)
			continue
		}
		p.tools = append(p.tools, e)
	}
	g.registry.setChanged(map[string]*part{partExternal: p})
}

// plainStream is a name of a stream with plain signs only.
func plainStream(name string) string {
	return strings.Map(func(r rune) rune {
		if plainRune(r) {
			return r
		}
		return '-'
	}, name)
}
