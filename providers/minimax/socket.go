package minimax

import (
	"context"
	"io"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
)

// The events of the service.
const (
	connected = "connected_success"
	started   = "task_started"
	finished  = "task_finished"
)

// firstTime is how long the start of a connection or a task may take, if the settings do not say.
const firstTime = 5 * time.Second

// dial opens a connection.
func (v *speaker) dial(ctx context.Context) (synthesis.Conn, error) {
	socket, err := v.dialer.Dial(ctx, service.Join(v.address, socketPath), v.header())
	if err != nil {
		return nil, err
	}
	c := &conn{Socket: socket, speaker: v}
	if err := c.await(connected); err != nil {
		socket.Close()
		return nil, err
	}
	return c, nil
}

// conn is a connection with one task, which speaks one sentence after another with the
// same voice.
type conn struct {
	*transport.Socket
	*speaker
	voice string // of the task; "": it has not begun
}

// next returns the next report.
func (c *conn) next(within time.Duration) (r report, err error) {
	if err := c.ReadJSON(within, &r); err != nil {
		return r, err
	}
	return r, r.failure()
}

// await waits for an event.
func (c *conn) await(event string) error {
	within := c.section.Timeouts.First
	if within <= 0 {
		within = firstTime
	}
	for {
		r, err := c.next(within)
		if err != nil || r.Event == event {
			return err
		}
	}
}

// Say begins the task if there is none and sends a sentence.
func (c *conn) Say(req providers.TTSRequest) error {
	name := c.section.Voice(req, voice)
	if c.voice != "" && c.voice != name {
		return errAnotherVoice
	}
	if c.voice == "" {
		start := c.settings(name)
		start["event"] = "task_start"
		if err := c.WriteJSON(start); err != nil {
			return err
		}
		if err := c.await(started); err != nil {
			return err
		}
		c.voice = name
	}
	return c.WriteJSON(map[string]any{"event": "task_continue", "text": unmarked(req.Text)})
}

// Receive returns sound of the sentence.
func (c *conn) Receive(within time.Duration) ([]byte, error) {
	r, err := c.next(within)
	if err != nil {
		return nil, err
	}
	sound, err := r.sound()
	if err == nil && (r.IsFinal || r.Event == finished) {
		err = io.EOF
	}
	return sound, err
}

// Cancel says that nothing but the end of the connection ends a sentence.
func (c *conn) Cancel() bool { return false }
