package connection

import (
	"encoding/json"
	"fmt"

	"xiaozhi/agent"
)

// Send queues a control message (agent.Outbox).
func (c *conn) Send(m agent.Message) {
	if c.sendAI(m) {
		return
	}
	if c.mute(m.Turn) {
		c.follow(m.Kind)
		return
	}
	text, err := textOf(c.session, m)
	if err != nil {
		c.log.Error("message to device cannot be written as json", "err", err)
		return
	}
	if text == nil {
		return
	}
	if !c.queue(m, text) {
		c.end(ErrStuck)
		return
	}
	c.follow(m.Kind)
}

// queue puts a control message before the writer. False: the queue is full.
func (c *conn) queue(m agent.Message, text []byte) bool {
	if m.Kind == agent.MessageTTSStop {
		return c.out.putStop(m.Turn, m.Cut, m.Closing, text)
	}
	_, ok := c.out.putText(text)
	return ok
}

// Audio queues one Opus packet of a turn (agent.Outbox).
func (c *conn) Audio(turn uint64, packet []byte) bool {
	if c.mute(turn) {
		return true // it is spoken all the same, to nobody
	}
	if !c.out.putAudio(turn, packet) {
		c.counts.refused.Add(1)
		return false
	}
	return true
}

// HangUp ends the connection in good order (agent.Outbox).
func (c *conn) HangUp(cause error) { c.end(hungUp(cause)) }

// sendCommands queues commands to the device's things (Link.Send of Things).
func (c *conn) sendCommands(commands json.RawMessage) error {
	return c.sendWrapped(iotMessage{c.session, "iot", commands})
}

// sendWrapped queues a message with something of others in it.
func (c *conn) sendWrapped(message any) error {
	text, err := encode(message)
	if err != nil {
		return fmt.Errorf("wrap message to device: %w", err)
	}
	return c.sendText(text)
}

// sendText queues a message of others, which must know whether it was taken.
func (c *conn) sendText(text []byte) error {
	live, ok := c.out.putText(text)
	if !ok {
		c.end(ErrStuck)
		return ErrStuck
	}
	if !live {
		return errLeft
	}
	return nil
}
