package app

import (
	"context"
	"errors"

	"xiaozhi/agent"
	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway"
)

// say speaks a text on a device.
func (l *liveDevices) say(ctx context.Context, id, text string, now bool) (gateway.Said, error) {
	t, ok := l.find(id)
	if !ok {
		return gateway.Said{}, inWords(ctx, agent.ErrOver)
	}
	said, err := t.Say(ctx, text, now)
	return gateway.Said{Heard: said.Heard, Whole: said.Whole}, inWords(ctx, err)
}

// ask speaks a text on a device and returns the user's answer.
func (l *liveDevices) ask(ctx context.Context, id, text string) (string, error) {
	t, ok := l.find(id)
	if !ok {
		return "", inWords(ctx, agent.ErrOver)
	}
	answer, err := t.Ask(ctx, text, 0)
	return answer, inWords(ctx, err)
}

// listen has a device listen.
func (l *liveDevices) listen(ctx context.Context, id string) error {
	t, ok := l.find(id)
	if !ok {
		return inWords(ctx, agent.ErrOver)
	}
	return inWords(ctx, t.Listen(ctx))
}

// abort cuts what a device says, and reports whether it said anything.
func (l *liveDevices) abort(ctx context.Context, id string) (bool, error) {
	t, ok := l.find(id)
	if !ok {
		return false, inWords(ctx, agent.ErrOver)
	}
	stopped, err := t.Stop(ctx)
	return stopped, inWords(ctx, err)
}

// inWords is an error in the language of whoever called.
func inWords(ctx context.Context, err error) error {
	if err == nil || mcp.InfoFrom(ctx).Language == "en" {
		return err
	}
	for _, known := range []struct {
		err error
		zh  string
	}{
		{agent.ErrOver, "设备已经断开"},
		{agent.ErrQueueFull, "等着这台设备说的话太多了"},
		{agent.ErrManual, "这台设备只在按住按钮时聆听"},
		{agent.ErrNoAnswer, "用户没有回答"},
		{agent.ErrUnheard, "还没说出来就被用户打断了"},
	} {
		if errors.Is(err, known.err) {
			return errors.New(known.zh)
		}
	}
	return err
}
