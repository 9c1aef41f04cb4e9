package offer

import (
	"context"
	"encoding/json"
	"time"

	"xiaozhi/mcp/gateway/catalog"
)

// Acts are the functions that act on the conversation of a connected device from
// outside. A nil one is not offered. They may be called at the same time.
type Acts struct {
	// Say speaks a text, at the next pause, or at once, cutting what is said. It
	// returns when the text has been played or was cut.
	Say func(ctx context.Context, id, text string, now bool) (Said, error)
	// Ask speaks a text and returns what the user says in answer to it.
	Ask func(ctx context.Context, id, text string) (string, error)
	// Listen has the device listen. An error if it does so by a button only.
	Listen func(ctx context.Context, id string) error
	// Abort cuts what the device says now, and reports whether it said anything.
	Abort func(ctx context.Context, id string) (bool, error)
}

// Said is the result of [Acts].Say.
type Said struct {
	Heard string `json:"heard"` // of them by the user
	Whole bool   `json:"whole"` // that is all of it
}

// Time limits of acts: a long text is spoken for minutes.
const (
	sayTime = 10 * time.Minute
	askTime = 3 * time.Minute
)

// The schemas of the tools that act on a device.
const (
	deviceProperty = `"device_id":{"type":"string","maxLength":64,"description":"设备：Device-Id、名字或 device-… ；只有一台设备时可省略 / the device, by its id or name; may be left out if there is only one"}`
	saySchema      = `{"type":"object","properties":{` + deviceProperty + `,` +
		`"text":{"type":"string","minLength":1,"maxLength":2000,"description":"要说的话 / what to say"},` +
		`"now":{"type":"boolean","description":"立刻说，打断正在说的；默认等下一个停顿 / at once, cutting what is said; else at the next pause"}},"required":["text"]}`
	askSchema = `{"type":"object","properties":{` + deviceProperty + `,` +
		`"text":{"type":"string","minLength":1,"maxLength":2000,"description":"要问的话 / what to ask"}},"required":["text"]}`
	deviceSchema = `{"type":"object","properties":{` + deviceProperty + `},"required":[]}`
)

// actTools returns the tools that act on the conversations of devices.
func actTools(devices Devices, acts Acts) []catalog.Tool {
	if devices == nil {
		return nil
	}
	var out []catalog.Tool
	add := func(name, description, schema string, limit time.Duration, act func(ctx context.Context, id, text string, now bool) (any, error)) {
		out = append(out, catalog.Tool{
			Stream: "device", Name: name, Description: description, Schema: json.RawMessage(schema), Timeout: limit,
			Run: func(ctx context.Context, arguments map[string]any) (any, error) {
				meant, _ := arguments["device_id"].(string)
				text, _ := arguments["text"].(string)
				now, _ := arguments["now"].(bool)
				id, err := pick(ctx, devices, meant)
				if err != nil {
					return nil, err
				}
				return act(ctx, id, text, now)
			},
		})
	}
	if acts.Say != nil {
		add("say", "让设备说一段话，说完或被打断后返回用户听到的部分。 Has a device say something; returns what was heard of it.", saySchema, sayTime,
			func(ctx context.Context, id, text string, now bool) (any, error) { return acts.Say(ctx, id, text, now) })
	}
	if acts.Ask != nil {
		add("ask", "让设备问一句话，等用户回答，返回回答的文字。 Has a device ask something and returns the spoken answer.", askSchema, askTime,
			func(ctx context.Context, id, text string, _ bool) (any, error) { return acts.Ask(ctx, id, text) })
	}
	if acts.Listen != nil {
		add("listen", "让设备开始聆听。 Has a device listen.", deviceSchema, 0, func(ctx context.Context, id, _ string, _ bool) (any, error) {
			return catalog.Say(catalog.Language(ctx), "好的", "done"), acts.Listen(ctx, id)
		})
	}
	if acts.Abort != nil {
		add("abort", "打断设备正在说的话。 Cuts what a device is saying.", deviceSchema, 0, func(ctx context.Context, id, _ string, _ bool) (any, error) {
			stopped, err := acts.Abort(ctx, id)
			if !stopped && err == nil {
				return catalog.Say(catalog.Language(ctx), "设备没有在说话", "the device was not saying anything"), nil
			}
			return catalog.Say(catalog.Language(ctx), "好的", "done"), err
		})
	}
	return out
}
