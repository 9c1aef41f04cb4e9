package connection

import (
	"context"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

// onHello answers the first hello, before anything else is done, and starts
// the conversation, unless a registration has done so. There is exactly one
// answer per connection (section 2.3).
func (c *conn) onHello(ctx context.Context, w helloWire) {
	if c.dialect.hello.Load() {
		c.grumble("second hello ignored")
		return
	}
	if c.who.deviceID == "" {
		c.end(ErrNoIdentity)
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
	c.dialect.hello.Store(true)
	c.log.Info("device said hello", "framing", h.Framing, "mcp", h.MCP, "aec", h.AEC, "rate", h.Uplink.Rate, "frame", h.Uplink.Frame)
	if c.talk == nil && c.server.tooBusy(c) {
		c.turnAway()
	} else if c.talk == nil {
		c.startTalk(ctx, h)
	} else if h.MCP && c.unasked != nil {
		c.startTools(ctx, c.unasked)
	}
}

// sessionOf is what the conversation and the tools may know of the connection.
func (c *conn) sessionOf() wire.Session {
	set := c.server.opts.Settings(c.who.deviceID)
	return wire.Session{
		DeviceID: c.who.deviceID, ClientID: c.who.clientID, SessionID: c.session,
		Language: c.server.languageFor(c.who.deviceID, set.Language),
		Name:     set.Name, Voice: set.Voice, AEC: c.stamped,
	}
}

// meet notes that the device has said who it is.
func (c *conn) meet() wire.Session {
	if !c.met {
		c.met = true
		c.noHello.Stop()
		c.pinger.Reset(firstPing)
	}
	session := c.sessionOf()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.language = session.Language
	return session
}

// turnAway tells a device aloud that there is no capacity for it, instead of
// starting its conversation.
func (c *conn) turnAway() {
	c.log.Warn("device turned away: the server is too busy", "lateness", c.server.Lateness())
	n, ok := c.server.notice(NoticeBusy, c.meet().Language)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok || c.ending {
		c.end(ErrBusy)
		return
	}
	d := newDoorman(c, n, ErrBusy)
	c.door.Store(d)
	c.speak(d.turnAway)
}

// startTalk makes the device's MCP client and its conversation.
func (c *conn) startTalk(ctx context.Context, h hello) {
	session := c.meet()
	var sources []mcp.Source
	if (h.MCP || !c.dialect.hello.Load()) && c.server.opts.NewTools != nil {
		tools := c.server.opts.NewTools(session, Link{Log: c.log, Send: c.sendPayload, BaseURL: c.who.baseURL, Vision: c.vision()})
		if tools != nil {
			c.unasked = tools
			if h.MCP && !c.startTools(ctx, tools) {
				return
			}
			sources = append(sources, tools)
		}
	}
	if !c.startLight(ctx, session) {
		return
	}
	if c.light != nil {
		sources = append(sources, c.light)
	}
	if c.server.opts.NewThings != nil {
		things := c.server.opts.NewThings(session, Link{Log: c.log, Send: c.sendCommands, BaseURL: c.who.baseURL})
		if things != nil {
			if !c.startThings(ctx, things) {
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

// startTools starts the device's MCP client. False: the connection ends.
func (c *conn) startTools(ctx context.Context, tools Tools) bool {
	return c.startSource(ctx, "device tools", func() error {
		c.tools = tools
		return tools.Start(ctx)
	})
}

// startSource runs start, unless the connection is ending: what is started is
// stopped by finish. start runs under mu. False: the connection ends.
func (c *conn) startSource(ctx context.Context, what string, start func() error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := context.Cause(ctx)
	if !c.ending {
		err = start()
	}
	if err != nil {
		c.end(failed(what+" cannot start", err))
	}
	return err == nil
}

// startThings is startTools for the things of older firmware.
func (c *conn) startThings(ctx context.Context, things Things) bool {
	return c.startSource(ctx, "device things", func() error {
		c.things = things
		return things.Start(ctx)
	})
}

// runTalk runs the conversation, whose end is that of the connection.
func (c *conn) runTalk(ctx context.Context, talk Talk) {
	if err := talk.Run(ctx); err != nil && ctx.Err() == nil {
		c.end(failed("conversation failed", err))
		return
	}
	c.end(errDone)
}
