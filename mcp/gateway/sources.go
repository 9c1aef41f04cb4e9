package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"xiaozhi/mcp"
)

// Acts are what can be done to the conversation of a connected device from
// outside. What is nil is not offered. They may be called at the same time.
type Acts struct {
	// Say speaks a text. It returns when the text is queued.
	Say func(ctx context.Context, id string, s Saying) error
	// Ask speaks a text and returns what is said in answer to it.
	Ask func(ctx context.Context, id string, s Saying) (string, error)
	// Listen has the device listen. An error if it does so by a button only.
	Listen func(ctx context.Context, id string) error
	// Abort cuts what the device says now.
	Abort func(ctx context.Context, id string) error
}

// Saying is something to be said.
type Saying struct {
	Text     string
	Language string // "zh" or "en"; "": the text's own
	Now      bool   // it cuts what is said at present; else it waits for a pause
}

// The schemas of the tools that act on a device.
const (
	deviceProperty = `"device_id":{"type":"string","maxLength":64,"description":"设备：Device-Id、名字或 device-… ；只有一台设备时可省略 / the device, by its id or name; may be left out if there is only one"}`
	saySchema      = `{"type":"object","properties":{` + deviceProperty + `,` +
		`"text":{"type":"string","minLength":1,"maxLength":2000,"description":"要说的话 / what to say"},` +
		`"language":{"type":"string","enum":["zh","en"],"description":"语言，可省略 / its language, may be left out"},` +
		`"now":{"type":"boolean","description":"立刻说，打断正在说的；默认等下一个停顿 / at once, cutting what is said; else at the next pause"}},"required":["text"]}`
	askSchema = `{"type":"object","properties":{` + deviceProperty + `,` +
		`"text":{"type":"string","minLength":1,"maxLength":2000,"description":"要问的话 / what to ask"},` +
		`"language":{"type":"string","enum":["zh","en"],"description":"语言，可省略 / its language, may be left out"}},"required":["text"]}`
	deviceSchema = `{"type":"object","properties":{` + deviceProperty + `},"required":[]}`
)

// actTools are the tools that act on a device's conversation.
func (g *Gateway) actTools() []*entry {
	if g.options.Devices == nil {
		return nil
	}
	saying := func(arguments map[string]any) Saying {
		text, _ := arguments["text"].(string)
		language, _ := arguments["language"].(string)
		now, _ := arguments["now"].(bool)
		return Saying{text, language, now}
	}
	done := func(ctx context.Context, err error) (any, error) {
		return say(contextLanguage(ctx), "好的", "done"), err
	}
	acts := g.options.Acts
	var out []*entry
	if acts.Say != nil {
		out = append(out, g.actTool("say", "让设备说一段话。 Has a device say something.", saySchema, func(ctx context.Context, id string, a map[string]any) (any, error) {
			return done(ctx, acts.Say(ctx, id, saying(a)))
		}))
	}
	if acts.Ask != nil {
		out = append(out, g.actTool("ask", "让设备问一句话，等用户回答，返回回答的文字。 Has a device ask something and returns the spoken answer.", askSchema,
			func(ctx context.Context, id string, a map[string]any) (any, error) {
				return acts.Ask(ctx, id, saying(a))
			}))
	}
	if acts.Listen != nil {
		out = append(out, g.actTool("listen", "让设备开始聆听。 Has a device listen.", deviceSchema, func(ctx context.Context, id string, _ map[string]any) (any, error) {
			return done(ctx, acts.Listen(ctx, id))
		}))
	}
	if acts.Abort != nil {
		out = append(out, g.actTool("abort", "打断设备正在说的话。 Cuts what a device is saying.", deviceSchema, func(ctx context.Context, id string, _ map[string]any) (any, error) {
			return done(ctx, acts.Abort(ctx, id))
		}))
	}
	return out
}

// actTool is one of them: act gets the device that is meant.
func (g *Gateway) actTool(name, description, schema string, act func(ctx context.Context, id string, arguments map[string]any) (any, error)) *entry {
	e, err := Tool{Stream: "device", Name: name, Description: description, Schema: json.RawMessage(schema), Run: func(ctx context.Context, arguments map[string]any) (any, error) {
		meant, _ := arguments["device_id"].(string)
		id, err := g.pick(ctx, meant)
		if err != nil {
			return nil, err
		}
		return act(ctx, id, arguments)
	}}.entry()
	if err != nil { // a test holds that the constants are right
		panic(err)
	}
	return e
}

// pick is the connected device that is meant: by its id, its name or its stream;
// "" is the only one there is.
func (g *Gateway) pick(ctx context.Context, meant string) (string, error) {
	language := contextLanguage(ctx)
	all := g.options.Devices.List()
	if meant == "" {
		if len(all) == 1 {
			return all[0].ID, nil
		}
		var ids []string
		for _, d := range all {
			ids = append(ids, d.ID)
		}
		return "", fmt.Errorf("%s%s", say(language, "请用 device_id 指明设备，已连接的有: ", "name the device by device_id; connected are: "), strings.Join(ids, ", "))
	}
	wanted := strings.ToLower(strings.TrimSpace(meant))
	for _, d := range all {
		stream := StreamOf(d.ID)
		if wanted == d.ID || wanted == stream || "device-"+wanted == stream || d.Name != "" && strings.EqualFold(meant, d.Name) {
			return d.ID, nil
		}
	}
	return "", fmt.Errorf("%s%s", say(language, "设备没有连接: ", "no such device is connected: "), clip(meant))
}

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
	checker, err := mcp.NewChecker(e.schema)
	if err != nil { // it stands for any object, as in the router
		if checker, err = mcp.NewChecker(nil); err != nil {
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
	raw, err := mcp.PlainJSON(properties)
	if err != nil {
		return nil, err
	}
	fields["properties"] = raw
	return mcp.PlainJSON(fields)
}

// takeDeviceID takes the argument device_id out.
func takeDeviceID(arguments string) (id, rest string, err error) {
	if strings.TrimSpace(arguments) == "" {
		return "", "", nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &fields); err != nil {
		return "", "", fmt.Errorf("arguments are no JSON object: %w", err)
	}
	if raw, ok := fields["device_id"]; ok {
		if err := json.Unmarshal(raw, &id); err != nil {
			return "", "", fmt.Errorf("device_id is no text: %w", err)
		}
		delete(fields, "device_id")
	}
	out, err := mcp.PlainJSON(fields)
	return id, string(out), err
}

// refreshDevice takes in what a device offers now, or that it has left, and tells
// those who subscribed to what is known of it.
func (g *Gateway) refreshDevice(ctx context.Context, id string) {
	g.takeDevice(id)
	g.Updated(ctx, append(deviceURIs(id), uriDevices)...)
}

// takeDevice makes the registry have what a device offers now.
func (g *Gateway) takeDevice(id string) {
	name := "device:" + id
	box, ok := g.options.Devices.Toolbox(id)
	if !ok {
		g.registry.set(name, nil)
		return
	}
	stream := StreamOf(id)
	p := &part{streams: []string{stream}}
	for _, o := range box.Offers() {
		if !o.OfDevice() {
			continue
		}
		e, err := g.deviceTool(id, stream, o)
		if err != nil {
			g.log.Warn("tool is not offered outward", "tool", o.Tool.Name, "device_id", id, "err", err)
			continue
		}
		p.tools = append(p.tools, e)
	}
	g.addDeviceResources(p, id)
	g.registry.setIfChanged(name, p)
}

// deviceTool is a tool of a device. A name that MCP does not allow is replaced
// by the one that models know.
func (g *Gateway) deviceTool(id, stream string, o mcp.Offer) (*entry, error) {
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
	e.limit = 2 * callTimeout // the router has limits of its own
	e.run = func(ctx context.Context, c call) outcome { return g.onDevice(ctx, id, o.Tool.Name, true, c) }
	return e, nil
}

// onDevice runs a tool by the router of a device, as a call of its model would
// be: its own tool, or one of this server that works on it.
func (g *Gateway) onDevice(ctx context.Context, id, name string, own bool, c call) outcome {
	failure := func(zh, en string) outcome {
		return outcome{response: mcp.ActionResponse{Action: mcp.ActionTypeError, Result: say(c.language, zh, en)}}
	}
	box, ok := g.options.Devices.Toolbox(id)
	if !ok {
		return failure("设备没有连接: "+id, "the device is not connected: "+id)
	}
	offers := box.Offers()
	i := slices.IndexFunc(offers, func(o mcp.Offer) bool { return o.Tool.Name == name && o.OfDevice() == own })
	if i < 0 {
		return failure("这台设备没有这个功能，请看 "+StreamOf(id)+" 里的工具", "this device does not do that; see the tools of "+StreamOf(id))
	}
	info := mcp.InfoFrom(ctx)
	info.DeviceID = id
	ctx = mcp.WithInfo(ctx, info)
	p, bad := box.Prepare(mcp.Call{ID: c.id, Name: offers[i].LLMName, Arguments: c.arguments, Language: c.language})
	switch {
	case bad != nil && bad.Action == mcp.ActionTypeNotFound:
		return outcome{response: *bad}
	case bad != nil:
		text := mcp.ResultText(*bad)
		for _, lead := range []string{"参数不对: ", "invalid arguments for " + offers[i].LLMName + ": "} {
			if _, why, found := strings.Cut(text, lead); found {
				text = why
				break
			}
		}
		return outcome{invalid: text}
	}
	response := box.Run(ctx, p)
	if response.Action == mcp.ActionTypeCallHandler {
		named, err := mcp.DecodeArgs[mcp.ActionResponseCall](response.Result)
		if err != nil {
			return failure(err.Error(), err.Error())
		}
		response = g.options.Devices.Act(ctx, id, named)
	}
	return outcome{response: response}
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
	g.registry.setIfChanged(partExternal, p)
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
