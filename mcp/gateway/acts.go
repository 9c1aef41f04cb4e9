package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	add := func(name, description, schema string, act func(ctx context.Context, id string, arguments map[string]any) (any, error)) {
		e, err := g.actTool(name, description, schema, act)
		if err != nil { // the tools are constants: a test holds that they are right
			g.log.Error("core tool left out", "err", err)
			return
		}
		out = append(out, e)
	}
	if acts.Say != nil {
		add("say", "让设备说一段话。 Has a device say something.", saySchema, func(ctx context.Context, id string, a map[string]any) (any, error) {
			return done(ctx, acts.Say(ctx, id, saying(a)))
		})
	}
	if acts.Ask != nil {
		add("ask", "让设备问一句话，等用户回答，返回回答的文字。 Has a device ask something and returns the spoken answer.", askSchema,
			func(ctx context.Context, id string, a map[string]any) (any, error) {
				return acts.Ask(ctx, id, saying(a))
			})
	}
	if acts.Listen != nil {
		add("listen", "让设备开始聆听。 Has a device listen.", deviceSchema, func(ctx context.Context, id string, _ map[string]any) (any, error) {
			return done(ctx, acts.Listen(ctx, id))
		})
	}
	if acts.Abort != nil {
		add("abort", "打断设备正在说的话。 Cuts what a device is saying.", deviceSchema, func(ctx context.Context, id string, _ map[string]any) (any, error) {
			return done(ctx, acts.Abort(ctx, id))
		})
	}
	return out
}

// actTool is one of them: act gets the device that is meant.
func (g *Gateway) actTool(name, description, schema string, act func(ctx context.Context, id string, arguments map[string]any) (any, error)) (*entry, error) {
	return Tool{Stream: "device", Name: name, Description: description, Schema: json.RawMessage(schema), Run: func(ctx context.Context, arguments map[string]any) (any, error) {
		meant, _ := arguments["device_id"].(string)
		id, err := g.pick(ctx, meant)
		if err != nil {
			return nil, err
		}
		return act(ctx, id, arguments)
	}}.entry()
}

// pick is the connected device that is meant: by its id, its name or its stream;
// "" is the only one there is.
func (g *Gateway) pick(ctx context.Context, meant string) (string, error) {
	who := callerFrom(ctx)
	language := who.language
	all := slices.DeleteFunc(g.options.Devices.List(), func(d Device) bool { return !who.reaches(d.ID) })
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
