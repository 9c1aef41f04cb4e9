package offer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/schema"
)

// localPart returns this server's own tools. Those that need a device take its id,
// with the schema deviceID.
func (o Options) localPart(deviceID json.RawMessage) *catalog.Part {
	p := &catalog.Part{}
	for _, t := range o.Local.GetAvailableTools() {
		if t.NeedsDevice && o.Devices == nil {
			continue
		}
		stream := cmp.Or(t.Stream, "local")
		offered, err := sourceTool(stream, t, o.Local.CallTool), error(nil)
		if t.NeedsDevice {
			offered, err = localDeviceTool(o.Devices, stream, t, deviceID)
		}
		if err == nil {
			err = p.AddTool(offered)
		}
		if err != nil {
			o.Log.Warn("tool is not offered outward", "tool", t.Name, "source", t.Source, "err", err)
		}
	}
	return p
}

// sharedPart returns the tools of other servers that are passed on, with their resources and prompts.
func (f *Follower) sharedPart() *catalog.Part {
	p := &catalog.Part{}
	for _, t := range f.o.Shared() {
		offered := sourceTool(outwardStream(t.Stream), t, func(ctx context.Context, _ string, arguments map[string]any) (any, error) {
			return f.o.CallShared(ctx, t, arguments)
		})
		offered.Foreign = true
		f.addTool(p, offered)
	}
	if f.o.Shares != nil {
		for _, s := range f.o.Shares() {
			addShare(p, s)
		}
	}
	return p
}

// sourceTool returns a tool of a source that belongs to no device.
func sourceTool(stream string, t mcp.Tool, run func(ctx context.Context, name string, arguments map[string]any) (any, error)) catalog.Tool {
	compiled, err := schema.Compile(t.Schema)
	if err != nil {
		compiled, _ = schema.Compile(nil) // of any object, as in the router: it is never wrong
	}
	return catalog.Tool{
		Stream: stream, Name: t.Name, Description: t.Description, Schema: t.Schema, Annotations: t.Annotations,
		Source: t.Source, Entry: t.Entry, Trusted: t.Trusted, Timeout: t.Timeout,
		Do: catalog.Checked(compiled, func(ctx context.Context, arguments map[string]any) (any, error) { return run(ctx, t.Name, arguments) }),
	}
}

func localDeviceTool(devices Devices, stream string, t mcp.Tool, deviceID json.RawMessage) (catalog.Tool, error) {
	schema, err := withDeviceID(t.Schema, deviceID)
	if err != nil {
		return catalog.Tool{}, err
	}
	return catalog.Tool{
		Stream: stream, Name: t.Name, Description: t.Description, Schema: schema, Annotations: t.Annotations, Timeout: deviceTime,
		Source: t.Source, Routed: true,
		Do: func(ctx context.Context, c catalog.Call) catalog.Outcome {
			meant, rest, err := takeDeviceID(c.Arguments)
			var id string
			if err == nil {
				id, err = pick(ctx, devices, meant)
			}
			if err != nil {
				return catalog.Outcome{Invalid: err.Error()}
			}
			c.Arguments = rest
			return onDevice(ctx, devices, id, t.Source, t.Name, c)
		},
	}, nil
}

// deviceTime bounds a call that goes to a device: its router has limits of its own,
// and the user may have to be asked first.
const deviceTime = askTime + catalog.CallTimeout

// timeOn is deviceTime for a tool whose calls may take longer.
func timeOn(o router.Offer) time.Duration { return askTime + max(catalog.CallTimeout, o.Limit) }

func withDeviceID(schema, deviceID json.RawMessage) (json.RawMessage, error) {
	var fields, properties map[string]json.RawMessage
	if err := json.Unmarshal(schema, &fields); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if raw := fields["properties"]; raw != nil {
		if err := json.Unmarshal(raw, &properties); err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
	}
	if properties == nil {
		properties = map[string]json.RawMessage{}
	}
	properties["device_id"] = deviceID
	raw, err := rawjson.Marshal(properties)
	if err != nil {
		return nil, err
	}
	fields["properties"] = raw
	return rawjson.Marshal(fields)
}

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
