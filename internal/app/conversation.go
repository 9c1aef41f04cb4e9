package app

import (
	"context"

	"xiaozhi/agent"
	"xiaozhi/agent/record"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/router"
)

// conversation joins an [agent.Conversation] with its recording and the router that
// it alone uses, and is in the directory while it runs.
type conversation struct {
	*agent.Conversation
	devices *directory.Devices
	info    directory.Info
	tape    *record.Tape // nil: it is not recorded
	tools   *router.Router
	sources []mcp.Source // of the device itself
	words   directory.Transcript
}

var _ directory.Device = (*conversation)(nil)

// Run holds the conversation, then joins the calls that are still running.
func (c *conversation) Run(ctx context.Context) (err error) {
	recorded := c.tape.Run(ctx)
	defer func() { recorded(err) }()
	defer c.tools.Close()
	c.devices.Add(c)
	defer c.devices.Remove(c)
	return c.Conversation.Run(ctx)
}

// Post hands over what the device did, and records it.
func (c *conversation) Post(ev wire.Event) error {
	c.tape.Event(ev)
	return c.Conversation.Post(ev)
}

// Hear hands over a microphone packet, and records it.
func (c *conversation) Hear(p wire.Packet) {
	c.tape.Hear(p)
	c.Conversation.Hear(p)
}

// Info describes the device.
func (c *conversation) Info() directory.Info { return c.info }

// Say speaks a text to the user.
func (c *conversation) Say(ctx context.Context, text string, now bool) (directory.Spoken, error) {
	said, err := c.Conversation.Say(ctx, text, now)
	return directory.Spoken(said), err
}

// Ask speaks a text and returns what the user answers within 30 s.
func (c *conversation) Ask(ctx context.Context, text string) (string, error) {
	return c.Conversation.Ask(ctx, text, 0)
}

// Offers lists the tools that the device's model is offered.
func (c *conversation) Offers() []router.Offer { return c.tools.Offers() }

// States returns the states of the device's things.
func (c *conversation) States() map[string]map[string]any {
	for _, s := range c.sources {
		if things, is := s.(*iot.Source); is {
			return things.States()
		}
	}
	return nil
}

// Transcript returns what was said on this connection.
func (c *conversation) Transcript() []directory.Line { return c.words.Lines() }
