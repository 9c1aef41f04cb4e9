package app

import (
	"context"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/remote"
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
	remote.Device
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
