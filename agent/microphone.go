package agent

import (
	"context"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
)

// microphone owns the listener of a conversation and what it needs to know of
// the device's sound. It belongs to the conversation's goroutine.
type microphone struct {
	c        *Conversation
	ears     *ears // nil: nobody listens
	stop     context.CancelCauseFunc
	farEnd   *echo.FarEnd   // nil: the device takes its own sound out of the microphone, or has none open
	selfEcho *echo.SelfEcho // nil: there is no echo, or words have to tell
	burst    wakeBurst
	open     *utterances
	failed   error // the listener did not keep up; the conversation looks after each event
}

func newMicrophone(c *Conversation) microphone {
	m := microphone{c: c, open: &utterances{cancel: map[uint64]context.CancelCauseFunc{}}}
	switch {
	case c.o.NoEchoGuard:
	case c.session.AEC:
		m.farEnd = &echo.FarEnd{}
	default:
		m.selfEcho = &echo.SelfEcho{}
	}
	return m
}

// packet passes a microphone packet to the listener. While the microphone is
// closed it is thrown away, but counted.
func (m *microphone) packet(p wire.Packet, open bool) {
	switch {
	case open && m.ears != nil:
		m.ears.in.Put(p)
	case !open:
		m.burst.frame(time.Now())
	}
}

// perform does what concerns the listener, and reports whether that was so.
func (m *microphone) perform(e turn.Effect) bool {
	switch e := e.(type) {
	case turn.Microphone:
		m.farEnd.Open(e.Open)
		m.selfEcho.Open(e.Open)
	case turn.Listen:
		m.listen(e)
	case turn.Mute, turn.EndUtterance, turn.Watch, turn.AwaitSilence:
		m.tell(e)
	case turn.Release:
		m.open.release(e.ID, e.Cause)
	case turn.CloseListener:
		m.close(e.Cause)
	default:
		return false
	}
	return true
}

// listen begins to listen afresh.
func (m *microphone) listen(l turn.Listen) {
	if m.ears != nil && m.ears.mode == l.Mode {
		m.tell(l)
		return
	}
	m.close(turn.ErrReplaced)
	c := m.c
	e := &ears{
		o: c.o, mode: l.Mode, stretch: l.Epoch, commits: l.Silence, lang: string(l.Lang), log: c.log,
		report: c.post, in: wire.NewQueue[turn.Effect](), monitor: m.farEnd, loopback: m.selfEcho, wg: &c.wg,
		child: c.child, utterances: m.open,
	}
	e.phrases = func() []string {
		if c.o.Phrases == nil {
			return nil
		}
		return c.o.Phrases("en", deviceSpecs(c.tools)) // the device's own names: others would only be misheard
	}
	var ctx context.Context
	ctx, m.stop = c.child()
	m.ears = e
	c.wg.Go(func() { e.run(ctx) })
}

func (m *microphone) close(cause error) {
	if m.ears != nil {
		m.stop(cause)
		m.ears, m.stop = nil, nil
	}
}

func (m *microphone) tell(e turn.Effect) {
	if m.ears == nil {
		return
	}
	if err := m.ears.in.Post(e); err != nil { // the listener hangs in a recogniser that breaks its contract
		m.c.log.Error("the listener does not keep up", "err", err)
		m.failed = err
	}
}

// utterances numbers what is said, and holds what ends the work for each. Its
// methods may be called at the same time.
type utterances struct {
	mu      sync.Mutex
	last    uint64
	cancel  map[uint64]context.CancelCauseFunc
	garbled int64 // packets that are not Opus
}

// add takes in a new utterance.
func (u *utterances) add(cancel context.CancelCauseFunc) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last++
	if cancel != nil {
		u.cancel[u.last] = cancel
	}
	return u.last
}

// release ends all that is done for an utterance.
func (u *utterances) release(id uint64, cause error) {
	u.mu.Lock()
	cancel := u.cancel[id]
	delete(u.cancel, id)
	u.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// isGarbled counts a packet that is not Opus, and gives how many there were.
func (u *utterances) isGarbled() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.garbled++
	return u.garbled
}

// detected is a wake word to be greeted, or typed text to be answered.
func (c *Conversation) detected(words string) turn.Event {
	burst := c.mic.burst.before(time.Now())
	words = strings.TrimSpace(words)
	switch {
	case words == "":
		return turn.WakeWord{Word: "…"}
	case burst, isOneOf(words, c.o.WakeWords):
		return turn.WakeWord{Word: words}
	}
	if r := []rune(words); len(r) > maxTyped {
		c.log.Warn("typed text is cut", "chars", len(r), "limit", maxTyped)
		words = string(r[:maxTyped])
	}
	return turn.Typed{Words: words}
}

// isWake reports whether a device gives a wake word as the reason of an abort.
func isWake(reason string) bool { return strings.Contains(reason, "wake") }

// transcript is what a recogniser says, in the words of the rules.
func transcript(t providers.Transcript, err error) turn.Text {
	out := turn.Text{Status: turn.Final, Words: t.Text, Provider: t.Provider, Err: err}
	switch {
	case err != nil:
		out.Status = turn.Failed
	case t.Rejected:
		out.Status = turn.Rejected
	}
	return out
}
