package offer

import (
	"context"
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

// actTools returns the tools that act on the conversations of devices.
func actTools(devices Devices, acts Acts) []catalog.Tool {
	if devices == nil {
		return nil
	}
	var out []catalog.Tool
	add := func(name string, limit time.Duration, act func(ctx context.Context, id, text string, now bool) (any, error)) {
		out = append(out, catalog.Tool{
			Stream: "device", Name: name, Timeout: limit,
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
		add("say", sayTime,
			func(ctx context.Context, id, text string, now bool) (any, error) { return acts.Say(ctx, id, text, now) })
	}
	if acts.Ask != nil {
		add("ask", askTime,
			func(ctx context.Context, id, text string, _ bool) (any, error) { return acts.Ask(ctx, id, text) })
	}
	if acts.Listen != nil {
		add("listen", 0, func(ctx context.Context, id, _ string, _ bool) (any, error) {
			return catalog.CallerFrom(ctx).Say("gateway/done"), acts.Listen(ctx, id)
		})
	}
	if acts.Abort != nil {
		add("abort", 0, func(ctx context.Context, id, _ string, _ bool) (any, error) {
			stopped, err := acts.Abort(ctx, id)
			if !stopped && err == nil {
				return catalog.CallerFrom(ctx).Say("gateway/silent"), nil
			}
			return catalog.CallerFrom(ctx).Say("gateway/done"), err
		})
	}
	return out
}
