package connection

import (
	"encoding/json"
	"fmt"
	"time"

	"xiaozhi/internal/wire"
)

// Send queues a control message ([wire.Outbox]).
func (c *conn) Send(m wire.Message) {
	if c.sendAI(m) {
		return
	}
	if c.mute(m.Turn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.follow(m)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.door.Load() == nil {
		c.putLocked(m)
	}
}

// put queues a control message of the door itself.
func (c *conn) put(m wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(m)
}

// putLocked puts a control message before the writer. A full queue ends the
// connection. The caller holds mu.
func (c *conn) putLocked(m wire.Message) {
	text, err := textOf(c.session, m)
	if err != nil {
		c.log.Error("message to device cannot be written as json", "err", err)
		return
	}
	if text == nil {
		return
	}
	var ok bool
	if m.Kind == wire.MessageTTSStop {
		ok = c.out.putStop(m.Turn, m.Cut, m.Closing, text)
	} else {
		_, ok = c.out.putText(text)
	}
	if !ok {
		c.end(ErrStuck)
		return
	}
	if c.door.Load() == nil {
		c.follow(m)
	}
}

// Audio queues one Opus packet of a turn ([wire.Outbox]).
func (c *conn) Audio(turn uint64, packet []byte) (stamp uint32, ok bool) {
	if c.mute(turn) || c.door.Load() != nil {
		return c.out.lastStamp(), true // it is spoken all the same, to nobody
	}
	if stamp, ok = c.out.putAudio(turn, packet); !ok {
		c.counts.refused.Add(1)
	}
	return stamp, ok
}

// Lag is how long the oldest frame has waited for the socket ([wire.Outbox]).
func (c *conn) Lag() time.Duration { return c.out.lag() }

// HangUp ends the connection in good order ([wire.Outbox]).
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
