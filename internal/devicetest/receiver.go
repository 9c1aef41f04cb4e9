package devicetest

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gorilla/websocket"
)

const (
	staleAfter = 120 * time.Second // silence after which the firmware takes a channel for dead
	closeLimit = time.Second       // from Close frame to the end of TCP
	closeGrace = 5 * time.Second   // how long a late end is waited for
	pongLimit  = 5 * time.Second
)

// receiver is the network task of the device, a goroutine: it reads the socket,
// judges each message at its arrival, and hands text to the main task.
type receiver struct {
	link     *link
	body     *body
	journal  *Journal
	main     *mainTask
	downlink *downlink
	requests *requests
	freezer  *freezer
	options  Options

	greeted chan error // the outcome of the hello; holds one
	lastIn  time.Time  // last text or binary message
}

// run reads until the connection ends.
func (r *receiver) run() {
	defer close(r.link.gone)
	for {
		kind, data, err := r.link.ws.ReadMessage()
		if err != nil {
			r.finish(time.Now(), err)
			return
		}
		r.freezer.pass()
		now := time.Now()
		r.checkStale(now)
		switch kind {
		case websocket.TextMessage:
			r.onText(now, data)
		case websocket.BinaryMessage:
			r.downlink.receive(now, data)
		}
	}
}

// finish notes how the connection ended. After a Close frame it waits for the
// server to end TCP, as the firmware leaves that to it.
func (r *receiver) finish(now time.Time, err error) {
	ours := r.link.closed.Load()
	r.body.mu.Lock()
	open := r.body.check.reply != nil && !r.body.check.isCut()
	r.body.mu.Unlock()
	how := "by the device"
	var closing *websocket.CloseError
	switch {
	case ours:
	case errors.As(err, &closing) && closing.Code != websocket.CloseAbnormalClosure:
		how = fmt.Sprintf("by the server: close %d %s", closing.Code, closing.Text)
		r.main.deliver(job{act: func() error { r.main.enter(now, Idle); return nil }, done: make(chan error, 1)})
		raw := r.link.ws.NetConn()
		_ = raw.SetReadDeadline(now.Add(closeGrace)) // else the transport is gone already
		_, _ = io.Copy(io.Discard, raw)              // ends with the connection or at the deadline; both are judged by the clock
		if took := time.Since(now); took > closeLimit+r.options.Limits.Tolerance && !r.link.closed.Load() {
			r.journal.violate(time.Now(), RuleLateClose, "TCP was open for %s after the Close frame", took)
		}
	default:
		how = "by the server: " + err.Error()
	}
	if !ours {
		r.checkStale(now)
		if open {
			r.journal.violate(now, RuleCloseInsideReply, "%s", how)
		}
	}
	r.link.ws.Close()
	r.journal.add(Event{At: time.Now(), Kind: KindClosed, Text: how})
}

func (r *receiver) checkStale(now time.Time) {
	quiet := now.Sub(r.lastIn)
	r.lastIn = now
	if quiet > staleAfter+r.options.Limits.Tolerance {
		r.journal.violate(now, RuleStale, "no data for %s", quiet)
	}
}

func (r *receiver) onText(now time.Time, raw []byte) {
	bad := func(rule Rule, format string, args ...any) { r.journal.violate(now, rule, format, args...) }
	m := parseText(raw, bad)
	r.journal.count(func(s *Stats) { s.TextIn++ })
	if m == nil {
		r.journal.add(Event{At: now, Kind: KindReceived, Size: len(raw), Raw: raw})
		return
	}
	r.journal.add(Event{At: now, Kind: KindReceived, Type: m.kind, State: m.state, Text: m.text, Emotion: m.emotion, Size: len(raw), Raw: raw})
	switch hello := r.link.hello.Load(); {
	case m.kind == "hello":
		if hello != nil {
			bad(RuleHelloAgain, "a second hello on this connection")
		} else {
			r.onHello(now, m, bad)
		}
		return
	case hello == nil:
		bad(RuleBeforeHello, "%s before the hello", m.kind)
	case !m.hasSession:
		bad(RuleSessionID, "%s message without session_id", m.kind)
	case m.session != hello.session:
		bad(RuleSessionID, "%s message with session_id %q, the hello said %q", m.kind, m.session, hello.session)
	}
	r.follow(now, m)
	if !r.main.deliver(job{message: m, at: now}) {
		bad(RuleFlood, "%d messages wait for the main task; %s is lost", jobsLimit, m.kind)
	}
}

func (r *receiver) onHello(now time.Time, m *inbound, bad breach) {
	h, err := parseHello(m, bad)
	if err != nil {
		bad(RuleHelloTransport, "%s", err)
		r.greet(&ViolationError{Violation{At: now, Rule: RuleHelloTransport, Detail: err.Error()}})
		return
	}
	r.body.mu.Lock()
	err = r.body.speaker.open(h.rate)
	r.body.mu.Unlock()
	r.link.hello.Store(&h)
	if err != nil {
		err = &ViolationError{Violation{At: now, Rule: RuleHelloAudio, Detail: err.Error()}}
	}
	r.body.enter(now, r.options.restsIn())
	r.greet(err)
}

// greet tells Dial the outcome of the hello; only the first one counts.
func (r *receiver) greet(err error) {
	select {
	case r.greeted <- err:
	default:
	}
}

// follow notes what a message means on the wire, at its arrival.
func (r *receiver) follow(now time.Time, m *inbound) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m.kind {
	case "tts":
		switch m.state {
		case "start":
			m.reply = b.check.start(now, b.speaker.rate)
		case "sentence_start":
			b.check.sentenceStart(now, m.text)
		case "stop":
			m.reply = b.check.stop(now, b.mode)
		}
	case "stt":
		b.check.stt(now, m.text)
	case "llm":
		b.check.emotion(now, m.emotion, m.text)
	case "mcp":
		r.requests.check(now, m, r.options.offersMCP())
	case "abort":
		r.journal.violate(now, RuleAbortEcho, "devices know no abort message")
	case "alert", "system", "custom":
	case "iot":
		if len(r.options.Things) == 0 {
			r.journal.count(func(s *Stats) { s.UnknownTypes++ })
			r.journal.violate(now, RuleIoT, "iot message to a device without things")
		}
	default:
		r.journal.count(func(s *Stats) { s.UnknownTypes++ })
	}
}
