package devicetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
)

// post queues an act for the main task without waiting for it.
func (d *Device) post(act func() error) {
	select {
	case d.jobs <- job{act: act, done: make(chan error, 1)}:
	default: // the main task is far behind and will end with the connection anyway
	}
}

// do has the main task perform an act, and waits for that.
func (d *Device) do(act func() error) error {
	done := make(chan error, 1)
	select {
	case d.jobs <- job{act: act, done: done}:
	case <-d.done:
		return ErrClosed
	}
	select {
	case err := <-done:
		return err
	case <-d.done:
	}
	select {
	case err := <-done:
		return err
	default:
		return ErrClosed
	}
}

// ListenStart opens the microphone in a mode, as the button and the wake word do.
// A reply that is going on is cut by it.
func (d *Device) ListenStart(mode Mode) error {
	return d.do(func() error { return d.listenStart(mode) })
}

func (d *Device) listenStart(mode Mode) error {
	now := time.Now()
	d.mu.Lock()
	d.mode = mode
	d.turn.cut(now)
	d.mu.Unlock()
	d.relisten.Stop()
	d.setState(now, Listening)
	if err := d.sendStates(); err != nil {
		return err
	}
	if err := d.sendControl(control{Type: "listen", State: "start", Mode: mode}); err != nil {
		return err
	}
	d.mu.Lock()
	d.flush(time.Now())
	d.mic = true
	d.mu.Unlock()
	d.micEvent(time.Now())
	return nil
}

// ListenStop lets the button go: the microphone closes and the device is idle at once.
func (d *Device) ListenStop() error {
	return d.do(func() error {
		if err := d.sendControl(control{Type: "listen", State: "stop"}); err != nil {
			return err
		}
		d.setState(time.Now(), Idle)
		return nil
	})
}

// Detect sends a wake word, or text as other clients type it (3.2.3). A device in
// manual mode that has only just connected is idle afterwards, ready to speak.
func (d *Device) Detect(text string) error {
	return d.do(func() error { return d.detect(text) })
}

func (d *Device) detect(text string) error {
	now := time.Now()
	d.mu.Lock()
	d.turn.cut(now)
	idle := d.state == Connecting && d.mode == Manual
	d.mu.Unlock()
	if idle {
		d.setState(now, Idle)
	}
	return d.sendControl(control{Type: "listen", State: "detect", Text: text})
}

// WakeWord is the only reason of an abort that devices send.
const WakeWord = "wake_word_detected"

// Abort cuts the reply (3.2.4). With no reason it is the button: the firmware
// stays in speaking until its tts stop comes. With WakeWord it listens by itself.
func (d *Device) Abort(reason string) error {
	return d.do(func() error {
		now := time.Now()
		d.mu.Lock()
		d.turn.abort(now) // before it is sent: the answer may be quick
		speaking := d.state == Speaking
		d.mu.Unlock()
		if err := d.sendControl(control{Type: "abort", Reason: reason}); err != nil {
			return err
		}
		switch {
		case !speaking:
		case reason != "":
			d.setState(now, Listening)
			d.listenAgain(now, true)
		case d.traits.abortLeaves && d.traits.noRelisten:
			d.setState(now, Idle)
		case d.traits.abortLeaves:
			d.setState(now, Listening)
		}
		return nil
	})
}

// SendText writes raw bytes as a text message, whatever they are.
func (d *Device) SendText(raw []byte) error { return d.sendText(raw) }

// SendBinary writes raw bytes as a binary message, without any framing.
func (d *Device) SendBinary(raw []byte) error { return d.write(websocket.BinaryMessage, raw) }

// SendFrames writes Opus packets in a burst, framed, in any state.
func (d *Device) SendFrames(packets ...[]byte) error {
	for _, p := range packets {
		if err := d.sendFrame(p, 0); err != nil {
			return err
		}
	}
	return nil
}

func (d *Device) sendFrame(packet []byte, timestamp uint32) error {
	d.mu.Lock()
	d.stats.FramesOut++
	d.mu.Unlock()
	return d.write(websocket.BinaryMessage, frameUp(d.opt.Protocol, timestamp, packet))
}

func (d *Device) sendControl(c control) error {
	if !d.traits.emptySession {
		c.SessionID = d.SessionID()
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return d.sendText(raw)
}

func (d *Device) sendText(raw []byte) error {
	e := Event{At: time.Now(), Kind: KindSent, Size: len(raw), Raw: raw}
	var c control
	if err := json.Unmarshal(raw, &c); err == nil { // broken on purpose: the event has the bytes only
		e.Type, e.State, e.Text = c.Type, c.State, c.Text
	}
	d.journal.add(e)
	d.mu.Lock()
	d.stats.TextOut++
	d.mu.Unlock()
	return d.write(websocket.TextMessage, raw)
}

// write sends one message; it waits for its turn and for the socket, at most writeLimit.
func (d *Device) write(kind int, data []byte) error {
	select {
	case d.writing <- struct{}{}:
	case <-d.gone:
		return ErrClosed
	}
	defer func() { <-d.writing }()
	if err := d.ws.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := d.ws.WriteMessage(kind, data); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}
