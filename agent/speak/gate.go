package speak

import (
	"time"

	"xiaozhi/internal/wire"
)

// gate holds the messages of a turn back that may not be seen yet: all while it
// is shut, those of the answer until tts start. Its owner guards it.
type gate struct {
	state     gateState
	started   time.Time
	opened    chan struct{} // closed while the turn may be seen and heard, and when it never will be
	certain   chan struct{} // closed when the turn may first be seen and heard
	begun     chan struct{} // closed when tts start was sent, or never will be
	held      []wire.Message
	announced bool // tts start was asked for: what comes now waits for it
	before    int  // how many were held when it was asked for
	shown     bool // a chunk of the answer was passed on
}

// gateState says how far a turn may go.
type gateState int

const (
	gateOpen    gateState = iota // it may be seen
	gateShut                     // nothing of it may reach the device
	gateStarted                  // tts start was sent: it may be heard
	gatePaused                   // no frame leaves for the moment
	gateClosed                   // it is over
)

func newGate() gate {
	g := gate{opened: make(chan struct{}), certain: make(chan struct{}), begun: make(chan struct{})}
	close(g.opened)
	close(g.certain)
	return g
}

func (g *gate) shut() {
	if g.state == gateOpen {
		g.state, g.opened, g.certain = gateShut, make(chan struct{}), make(chan struct{})
	}
}

// open passes on what waits for nothing but the gate.
func (g *gate) open(send func(wire.Message)) {
	if g.state != gateShut {
		return
	}
	g.state = gateOpen
	close(g.opened)
	close(g.certain)
	held := g.held
	g.held = nil
	for i, m := range held {
		if waitsForStart(m) || g.announced && i >= g.before {
			g.held = append(g.held, m)
			continue
		}
		send(m)
	}
}

// announce reports whether tts start was not asked for before.
func (g *gate) announce() bool {
	if g.announced || g.state != gateOpen && g.state != gateShut {
		return false
	}
	g.announced, g.before = true, len(g.held)
	return true
}

// start passes on what waits for tts start, which was just sent.
func (g *gate) start(now time.Time, send func(wire.Message)) {
	if g.state == gateShut {
		close(g.certain)
	}
	g.unlock()
	g.state, g.started = gateStarted, now
	for _, m := range g.held {
		g.shown = g.shown || m.Kind == wire.MessageChunk
		send(m)
	}
	g.held = nil
	close(g.begun)
}

// reword replaces the words of the user that wait to be shown.
func (g *gate) reword(words string) {
	for i := range g.held {
		if g.held[i].Kind == wire.MessageSTT {
			g.held[i].Text = words
		}
	}
}

// pass passes a message on, or holds it back.
func (g *gate) pass(m wire.Message, send func(wire.Message)) {
	if m.Kind == wire.MessageSTT && (g.announced || g.state == gateStarted || g.state == gatePaused) {
		return
	}
	switch g.state {
	case gateClosed:
		return
	case gateShut:
		g.held = append(g.held, m)
		return
	case gateOpen:
		if g.announced || waitsForStart(m) {
			g.held = append(g.held, m)
			return
		}
	case gateStarted, gatePaused:
	}
	g.shown = g.shown || m.Kind == wire.MessageChunk
	send(m)
}

func (g *gate) close() {
	if g.state == gateClosed {
		return
	}
	g.unlock()
	if g.state != gateStarted && g.state != gatePaused {
		close(g.begun)
	}
	g.state = gateClosed
}

// unlock lets those go on that wait for the gate.
func (g *gate) unlock() {
	if g.state == gateShut {
		close(g.opened)
	}
}

// waitsForStart reports whether a message must not come before tts start.
func waitsForStart(m wire.Message) bool {
	return m.Kind == wire.MessageChunk || m.Kind == wire.MessageEmotion
}
