// Package dnd lets the user of a device say when it is not to disturb: until then it says nothing that nobody has asked for.
package dnd

import (
	"context"
	"errors"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// Switch switches a device to quiet, and back. Its methods may be called at any time, and wait for what keeps it.
type Switch interface {
	// Begin has a device be quiet until a time; zero: until somebody ends it.
	Begin(ctx context.Context, device string, until time.Time) error
	// End ends it, and quiet hours too. house: all devices are quiet, which one of them cannot end.
	End(ctx context.Context, device string) (house bool, err error)
}

// Feature completes the tools for quiet mode.
type Feature struct{ Switch Switch }

// Name is the name of its state, which it does not have.
func (Feature) Name() string { return "dnd" }

// Attach makes the instance of a conversation.
func (f Feature) Attach(h feature.Host, _ feature.State) feature.Instance { return &dnd{h, f.Switch} }

type dnd struct {
	feature.Host

	quiet Switch
}

var _ feature.Handling = (*dnd)(nil)

// Expects implements [feature.Instance].
func (*dnd) Expects(time.Time) bool { return false }

// Detach implements [feature.Instance].
func (*dnd) Detach() feature.State { return nil }

// Handler implements [feature.Handling].
func (d *dnd) Handler(name string) feature.Handler {
	if name == mcp.HandlerQuiet {
		return d.handle
	}
	return nil
}

// handle switches. Nothing is confirmed before it is kept.
func (d *dnd) handle(from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.QuietArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	s := d.Env().Session
	if s.Unknown {
		return think.Handled{}, errors.New(message.In(from.Lang, "agent/quiet-stranger"))
	}
	return think.Handled{Finish: func(ctx context.Context) (think.Handled, error) {
		words, err := d.do(ctx, a, from.Lang)
		if err != nil && ctx.Err() == nil {
			d.Env().Log.Error("quiet mode cannot be switched", "err", err)
			err = errors.New(message.In(from.Lang, "agent/quiet-not-kept"))
		}
		return think.Handled{Say: words}, err
	}}, nil
}

// do switches, and returns what is said about it.
func (d *dnd) do(ctx context.Context, a mcp.QuietArgs, lang text.Lang) (string, error) {
	env := d.Env()
	say := func(id string, args ...string) string { return env.Texts.Phrase(id, string(lang), args...) }
	if !a.On {
		house, err := d.quiet.End(ctx, env.Session.DeviceID)
		if house {
			return say(prompts.QuietHouse), err
		}
		return say(prompts.QuietOff), err
	}
	if err := d.quiet.Begin(ctx, env.Session.DeviceID, a.Until); err != nil {
		return "", err
	}
	if a.Until.IsZero() {
		return say(prompts.QuietOn), nil
	}
	return say(prompts.QuietUntil, "time", spoken.SayTime(a.Until.In(env.Zone), time.Now().In(env.Zone), lang)), nil
}
