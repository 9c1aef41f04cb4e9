package devicetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"xiaozhi/audio"

	"github.com/gorilla/websocket"
)

const (
	staleAfter = 120 * time.Second // silence after which the firmware takes a channel for dead
	closeLimit = time.Second       // from Close frame to the end of TCP
	closeGrace = 5 * time.Second   // how long a late end is waited for
	pongLimit  = 5 * time.Second
)

// read is the reader goroutine. It ends when the connection does.
func (d *Device) read() {
	defer close(d.gone)
	for {
		kind, data, err := d.ws.ReadMessage()
		if err != nil {
			d.finishRead(time.Now(), err)
			return
		}
		d.awake <- struct{}{} // at the latest when Close has ended the tool
		<-d.awake
		now := time.Now()
		d.checkStale(now)
		switch kind {
		case websocket.TextMessage:
			d.onText(now, data)
		case websocket.BinaryMessage:
			d.onBinary(now, data)
		}
	}
}

// finishRead notes how the connection ended. After a Close frame it waits for
// the server to end TCP, as the firmware leaves that to it.
func (d *Device) finishRead(now time.Time, err error) {
	d.mu.Lock()
	ours := d.closed
	open := d.turn.reply != nil && d.turn.cutAt.IsZero()
	d.mu.Unlock()
	how := "by the device"
	var closing *websocket.CloseError
	switch {
	case ours:
	case errors.As(err, &closing) && closing.Code != websocket.CloseAbnormalClosure:
		how = fmt.Sprintf("by the server: close %d %s", closing.Code, closing.Text)
		d.post(func() error { d.setState(now, Idle); return nil })
		d.awaitEnd(now)
	default:
		how = "by the server: " + err.Error()
	}
	if !ours {
		d.checkStale(now)
		if open {
			d.journal.violate(now, RuleCloseInsideReply, "%s", how)
		}
	}
	d.ws.Close()
	d.journal.add(Event{At: time.Now(), Kind: KindClosed, Text: how})
}

func (d *Device) awaitEnd(closed time.Time) {
	raw := d.ws.NetConn()
	if err := raw.SetReadDeadline(closed.Add(closeGrace)); err != nil {
		return // the transport is gone already
	}
	_, _ = io.Copy(io.Discard, raw) // ends with the connection or at the deadline; both are judged by the clock
	d.mu.Lock()
	ours := d.closed
	d.mu.Unlock()
	if took := time.Since(closed); took > closeLimit+d.opt.Tolerance && !ours {
		d.journal.violate(time.Now(), RuleLateClose, "TCP was open for %s after the Close frame", took)
	}
}

func (d *Device) checkStale(now time.Time) {
	d.mu.Lock()
	quiet := now.Sub(d.lastIn)
	d.lastIn = now
	d.mu.Unlock()
	if quiet > staleAfter+d.opt.Tolerance {
		d.journal.violate(now, RuleStale, "no data for %s", quiet)
	}
}

// pong answers a ping; a server that does not read gets none.
func (d *Device) pong(payload string) error {
	d.mu.Lock()
	d.stats.Pings++
	d.mu.Unlock()
	err := d.ws.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(pongLimit))
	if errors.Is(err, websocket.ErrCloseSent) || err == nil {
		return nil
	}
	return fmt.Errorf("answer ping: %w", err)
}

// onText judges a text message and hands it to the main task.
func (d *Device) onText(now time.Time, raw []byte) {
	m, found := parseText(raw)
	for _, v := range found {
		d.journal.violate(now, v.Rule, "%s", v.Detail)
	}
	e := Event{At: now, Kind: KindReceived, Size: len(raw), Raw: raw}
	if m != nil {
		e.Type, e.State, e.Text, e.Emotion = m.kind, m.state, m.text, m.emotion
	}
	d.journal.add(e)
	d.mu.Lock()
	d.stats.TextIn++
	hasHello := d.hasHello
	d.mu.Unlock()
	if m == nil {
		return
	}
	if m.kind == "hello" {
		d.onHello(now, m, hasHello)
		return
	}
	if !hasHello {
		d.journal.violate(now, RuleBeforeHello, "%s before the hello", m.kind)
	}
	d.checkSession(now, m, hasHello)
	d.onMessage(now, m)
	select {
	case d.jobs <- job{message: m, at: now}:
	default:
		d.journal.violate(now, RuleFlood, "%d messages wait for the main task; %s is lost", jobsLimit, m.kind)
	}
}

func (d *Device) checkSession(now time.Time, m *inbound, hasHello bool) {
	if !hasHello {
		return
	}
	switch want := d.SessionID(); {
	case !m.hasSession:
		d.journal.violate(now, RuleSessionID, "%s message without session_id", m.kind)
	case m.session != want:
		d.journal.violate(now, RuleSessionID, "%s message with session_id %q, the hello said %q", m.kind, m.session, want)
	}
}

func (d *Device) onHello(now time.Time, m *inbound, again bool) {
	if again {
		d.journal.violate(now, RuleHelloAgain, "a second hello on this connection")
		return
	}
	h, found, err := parseHello(m)
	for _, v := range found {
		d.journal.violate(now, v.Rule, "%s", v.Detail)
	}
	if err != nil {
		d.journal.violate(now, RuleHelloTransport, "%s", err)
		d.greet(&ViolationError{Violation{At: now, Rule: RuleHelloTransport, Detail: err.Error()}})
		return
	}
	d.mu.Lock()
	d.hasHello, d.session, d.rate = true, h.session, h.rate
	d.length = time.Duration(h.frameMs * float64(time.Millisecond))
	d.decoder, err = audio.NewDecoder(h.rate)
	if d.opt.NoDecode {
		d.decoder = nil // it was made only to see that one can be
	}
	if err == nil && d.opt.Room != nil {
		d.ear, err = audio.NewDecoder(microphoneRate)
	}
	d.mu.Unlock()
	if err != nil {
		err = &ViolationError{Violation{At: now, Rule: RuleHelloAudio, Detail: err.Error()}}
	}
	if d.traits.noConnecting {
		next := Listening
		if d.opt.Profile == Browser {
			next = Idle
		}
		d.setState(now, next)
	}
	d.greet(err)
}

// greet tells Dial the outcome; only the first one counts.
func (d *Device) greet(err error) {
	select {
	case d.greeted <- err:
	default:
	}
}

// onMessage follows what a message means on the wire, at its arrival.
func (d *Device) onMessage(now time.Time, m *inbound) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch m.kind {
	case "tts":
		switch m.state {
		case "start":
			m.reply = d.turn.start(now, d.rate)
		case "sentence_start":
			d.turn.sentenceStart(now, m.text)
		case "stop":
			m.reply = d.turn.stop(now, d.mode)
		}
	case "stt":
		d.turn.stt(now, m.text)
	case "llm":
		d.turn.emotion(now, m.emotion, m.text)
	case "mcp":
		d.checkRequest(now, m)
	case "abort":
		d.journal.violate(now, RuleAbortEcho, "devices know no abort message")
	case "alert", "system", "custom":
	case "iot":
		if len(d.opt.Things) == 0 {
			d.stats.UnknownTypes++
			d.journal.violate(now, RuleIoT, "iot message to a device without things")
		}
	default:
		d.stats.UnknownTypes++
	}
}

// offersMCP tells whether the hello offered MCP.
func (d *Device) offersMCP() bool {
	if d.opt.Hello == nil {
		return !d.traits.noFeatures && !d.opt.NoMCP
	}
	var h clientHello
	if err := json.Unmarshal(d.opt.Hello, &h); err != nil {
		return false // a broken hello on purpose offers nothing
	}
	return h.Features != nil && h.Features.MCP
}
