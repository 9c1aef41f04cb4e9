package agent

import (
	"cmp"
	"errors"
	"time"
	core "xiaozhi/agent/turn"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
)

// This file is the conversation's speaking side: how turns begin and end.

// busy reports whether a turn runs or waits to begin.
func (c *Conversation) busy() bool {
	return c.pending != nil || (c.turn != nil && !c.turnDone && c.live)
}

// begin starts a turn, as soon as the one before it has been joined.
func (c *Conversation) begin(ord order) {
	c.touch()
	if c.turn != nil && !c.turnDone {
		if c.live {
			c.takeAway(ErrReplaced)
		}
		c.dropPending()
		c.pending = &ord
		return
	}
	c.turns++
	c.did(core.Begin{Turn: c.turns, Request: ord.request()})
	ctx, cancel := c.child()
	t := &turn{
		id: c.turns, order: ord, o: c.o, tools: c.tools, session: c.session,
		log:    c.log.With("turn", c.turns),
		floor:  newTrialFloor(c.out, c.turns, c.o.Reply, c.o.Lead),
		timing: ord.timing, history: c.dev.history.snapshot(), cancel: cancel,
		role: cmp.Or(c.dev.role, c.o.Prompt), mail: c.dev.mail, report: c.report, calls: &c.dev.calls,
		voiced: &c.voiced, undo: ord, version: c.dev.history.version,
	}
	t.floor.monitor, t.floor.loopback, t.floor.phases = c.monitor, c.loopback, &c.o.Devices.phases
	if c.pacer != nil {
		t.floor.pacer.Inherit(c.pacer)
	}
	c.pacer = t.floor.pacer
	if !ord.trial {
		t.floor.grant()
	}
	ended := c.ended
	t.late = func(p router.Prepared, r mcp.ActionResponse) {
		l := lateCall{prepared: p, response: r}
		select {
		case <-ended:
			l.gone = true
		default:
		}
		t.mail.post(l)
	}
	t.speaker = newSpeaker(c.o, t.log, t.floor, t.timing, c.session.Voice, func() { c.report(turnBegan{t}) })
	if c.shadow != nil {
		t.speaker.wanted = func() { c.report(shadowEvent{core.Ready{Turn: t.id}}) }
	}
	if ord.notice != nil && ord.notice.song != nil {
		ord.notice.song.playing = true
	}
	c.turn, c.live, c.turnDone, c.adopted = t, true, false, false
	if ord.stt != "" {
		t.floor.send(wire.Message{Kind: wire.MessageSTT, Text: ord.stt})
	}
	c.wg.Go(func() {
		if err := protect(t.log, "turn", func() error { t.run(ctx); return nil }); err != nil {
			t.floor.stop()
			t.out = outcome{cause: ErrFailed, err: err}
		}
		c.report(turnEnded{t})
	})
}

// dropPending gives up the turn that waits to begin. Whoever waits for it
// outside hears that nothing of it was heard.
func (c *Conversation) dropPending() {
	if c.pending == nil {
		return
	}
	if n := c.pending.notice; n != nil && n.from != nil {
		n.from.said <- Said{}
	}
	c.pending = nil
}

// takeAway ends the turn that runs. The device hears of it only if it has heard
// of the turn; takeAway reports whether tts stop was sent.
func (c *Conversation) takeAway(cause error) bool {
	c.dropPending()
	c.hushDue.Stop() // a pause ends with the reply that was paused
	c.overlap.hushed = false
	if c.turn == nil || c.turnDone || !c.live {
		return false
	}
	c.live = false
	c.did(core.Cut{Turn: c.turn.id, Cause: cause})
	stopped := c.turn.floor.cut()
	c.turn.cancel(cause)
	return stopped
}

// speaking is where the turn can no more be undone: tts start was sent.
func (c *Conversation) speaking(t *turn) {
	if t != c.turn || !c.live {
		return
	}
	c.did(core.Start{Turn: t.id})
	c.answered()
	c.step(sigStart)
	c.overlap = overlap{u: c.overlap.u} // who began while it was thought about
	c.earsWhileSpeaking()
}

// earsWhileSpeaking is what the ears do while a reply is spoken.
func (c *Conversation) earsWhileSpeaking() {
	switch u := c.overlap.u; {
	case c.mode == wire.Realtime:
		c.tellEars(earsWatch{true})
	case u != nil && u.overlaps && !u.over && u.stretch == c.stretch:
		c.tellEars(earsStop{}) // what the user has said so far is not lost
	default:
		c.tellEars(earsMute{})
	}
}

// answered lets go of what was said: the answer can no more be undone.
func (c *Conversation) answered() {
	for _, u := range c.heard {
		u.cancel(ErrDone)
	}
	c.heard = nil
	c.trials, c.discarded = 0, 0
}

// turnOver takes in what a turn left behind, and begins the next.
func (c *Conversation) turnOver(t *turn) {
	if t != c.turn {
		return
	}
	trial := c.turn.order.trial && !c.adopted
	c.turnDone = true
	if trial { // undone, or broken: whatever it was is void
		c.live = false
		c.did(core.Discard{Turn: t.id})
		c.log.Debug("speculation discarded", "turn", t.id, "cause", t.out.cause)
		c.nextTurn(t)
		return
	}
	if c.live {
		c.did(core.Stop{Turn: t.id})
	}
	c.did(core.Remember{Turn: t.id})
	c.touch()
	c.remember(t)
	if t.out.hangUp {
		c.hangUp(ErrGoodbye)
	}
	if c.live {
		c.live = false
		c.replyOver(t)
		c.listenAgain()
	}
	c.nextTurn(t)
}

// nextTurn lets go of a turn that has been joined, and begins the one that
// waits for that. Its end may have begun another one already.
func (c *Conversation) nextTurn(over *turn) {
	if c.turn == over {
		c.turn = nil // with its buffers and its encoder: most devices are silent most of the time
	}
	if ord := c.pending; ord != nil {
		c.pending = nil
		switch { // what it answers was only known now
		case ord.text == "" || ord.trial:
		case c.awaited():
			ord.told = c.answers(ord.text)
		case c.asked != nil:
			*ord = c.consented(*ord)
		}
		c.begin(*ord)
	}
}

// remember puts a turn into the history and writes its one log line.
func (c *Conversation) remember(t *turn) {
	if !t.forgotten {
		c.dev.history.add(t.out.messages...)
		c.dev.history.cut(c.o.HistoryTokens, c.count)
	}
	for _, s := range c.early {
		c.dev.history.replaceResult(s.callID, s.result)
	}
	c.early = nil
	if t.out.asked != nil {
		c.asked = &consent{*t.out.asked, t.action, time.Now().Add(consentTime)}
	}
	if n := t.order.notice; n != nil {
		c.noticeOver(t, *n)
	}
	log := t.log.With("cause", t.out.cause, "interrupted", t.out.cut, "heard_chars", t.out.heard)
	if t.alarms > 0 {
		log = log.With("false_alarms", t.alarms)
	}
	if t.out.err != nil {
		log.Warn("turn", append(t.timing.attrs(t.floor), "err", t.out.err)...)
	} else {
		log.Info("turn", t.timing.attrs(t.floor)...)
	}
	// One final for each reply, also for one of which nothing was heard.
	if text := joinText(answerText(t.out.messages), t.out.asides); text != "" || t.floor.showed() {
		c.out.Send(wire.Message{Kind: wire.MessageFinal, Turn: t.id, Text: text})
	}
}

// noticeOver puts back what was not heard of a notice, and music that was paused.
func (c *Conversation) noticeOver(t *turn, n notice) {
	switch {
	case n.song != nil:
		c.songOver(t, n.song)
	case n.from != nil:
		c.requestOver(t, n.from)
	case !t.out.cut || errors.Is(t.out.cause, ErrFailed):
	case n.ring && t.out.played > 0 && (!n.reminds || errors.Is(t.out.cause, ErrAborted)):
		// The bell was heard, and it says all, or the button has ended it.
	case t.out.heard == 0:
		c.untold(n)
	default:
		c.untold(unheard(n.parts, t.out.heard)...)
	}
}

// unheard are those parts of which no character is among the first heard.
func unheard(parts []notice, heard int) []notice {
	for len(parts) > 0 && heard > 0 {
		heard -= len([]rune(parts[0].say)) + 1
		parts = parts[1:]
	}
	return parts
}

// answerText is all that the assistant said in a turn.
func answerText(messages []providers.Message) string {
	var text string
	for _, m := range messages {
		if m.Role == providers.RoleAssistant {
			text = joinText(text, m.Content)
		}
	}
	return text
}

// count is how many tokens a text has.
func (c *Conversation) count(text string) int {
	if c.o.Tokens == nil {
		return len(text)
	}
	return c.o.Tokens.Count(text)
}
