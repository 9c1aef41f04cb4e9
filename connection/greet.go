package connection

import (
	"context"

	"xiaozhi/agent"
	"xiaozhi/mcp"
)

// onHello answers the first hello, before anything else is done, and starts
// the conversation. There is exactly one answer per connection (section 2.3).
func (c *conn) onHello(ctx context.Context, w helloWire) {
	if c.talk != nil {
		c.grumble("second hello ignored")
		return
	}
	h := w.read(c.who.protocol)
	if len(h.Odd) > 0 {
		c.log.Warn("hello has fields that are not as they should be", "fields", h.Odd)
	}
	c.framing, c.stamped = h.Framing, h.AEC && h.Framing == 2
	reply, err := encode(newHelloReply(c.session))
	if err != nil {
		c.end(failed("hello cannot be written", err))
		return
	}
	c.out.putText(reply)
	close(c.helloed)
	c.log.Info("device said hello", "framing", h.Framing, "mcp", h.MCP, "aec", h.AEC, "rate", h.Uplink.Rate, "frame", h.Uplink.Frame)
	c.startTalk(ctx, h)
}

// startTalk makes the device's MCP client and its conversation.
func (c *conn) startTalk(ctx context.Context, h hello) {
	set := c.server.opts.Settings(c.who.deviceID)
	session := agent.Session{
		DeviceID: c.who.deviceID, ClientID: c.who.clientID, SessionID: c.session,
		Language: c.server.languageFor(c.who.deviceID, set.Language),
		Name:     set.Name, Voice: set.Voice, AEC: h.AEC,
	}
	var sources []mcp.Source
	if h.MCP && c.server.opts.NewTools != nil {
		tools := c.server.opts.NewTools(session, Link{Send: c.sendPayload, BaseURL: c.who.baseURL, Vision: c.vision()})
		if tools != nil {
			if err := c.startTools(ctx, tools); err != nil {
				c.end(failed("device tools cannot start", err))
				return
			}
			sources = append(sources, tools)
		}
	}
	if c.server.opts.NewThings != nil {
		things := c.server.opts.NewThings(session, Link{Send: c.sendCommands, BaseURL: c.who.baseURL})
		if things != nil {
			if err := c.startThings(ctx, things); err != nil {
				c.end(failed("device things cannot start", err))
				return
			}
			sources = append(sources, things)
		}
	}
	talk, err := c.server.opts.NewTalk(session, c, sources)
	if err != nil {
		c.end(failed("conversation cannot start", err))
		return
	}
	c.talk = talk
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return
	}
	c.talking = true
	c.wg.Go(func() {
		defer close(c.talkOver)
		c.guard("conversation", func() { c.runTalk(ctx, talk) })
	})
}

// startTools starts the client, unless the connection is ending: what is
// started is stopped by finish.
func (c *conn) startTools(ctx context.Context, tools Tools) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return context.Cause(ctx)
	}
	c.tools = tools
	return tools.Start(ctx)
}

// startThings is startTools for the things of older firmware.
func (c *conn) startThings(ctx context.Context, things Things) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return context.Cause(ctx)
	}
	c.things = things
	return things.Start(ctx)
}

// runTalk runs the conversation, whose end is that of the connection.
func (c *conn) runTalk(ctx context.Context, talk Talk) {
	if err := talk.Run(ctx); err != nil && ctx.Err() == nil {
		c.end(failed("conversation failed", err))
		return
	}
	c.end(errDone)
}
