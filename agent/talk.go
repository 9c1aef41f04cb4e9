package agent

import (
	"xiaozhi/mcp"
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
		c.pending = &ord
		return
	}
	c.turns++
	ctx, cancel := c.child()
	t := &turn{
		id: c.turns, order: ord, o: c.o, tools: c.tools, session: c.session,
		log:    c.log.With("turn", c.turns),
		floor:  newFloor(c.out, c.turns, c.o.Reply, c.o.Lead),
		timing: ord.timing, history: c.dev.history.snapshot(), cancel: cancel,
	}
	t.late = func(p mcp.Prepared, r mcp.ActionResponse) { c.report(lateCall{p, r}) }
	t.speaker = newSpeaker(c.o, t.floor, t.timing, c.session.Voice, func() { c.report(turnBegan{t}) })
	c.turn, c.live, c.turnDone = t, true, false
	if ord.stt != "" {
		t.floor.send(Message{Kind: MessageSTT, Text: ord.stt})
	}
	c.wg.Go(func() {
		if err := protect(t.log, "turn", func() error { t.run(ctx); return nil }); err != nil {
			t.floor.stop()
			t.out = outcome{cause: ErrFailed, err: err}
		}
		c.report(turnEnded{t})
	})
}

// takeAway ends the turn that runs. The device hears of it only if it has heard
// of the turn; takeAway reports whether tts stop was sent.
func (c *Conversation) takeAway(cause error) bool {
	c.pending = nil
	if c.turn == nil || c.turnDone || !c.live {
		return false
	}
	c.live = false
	stopped := c.turn.floor.cut()
	c.turn.cancel(cause)
	return stopped
}

// speaking is where the turn can no more be undone: tts start was sent.
func (c *Conversation) speaking(t *turn) {
	if t != c.turn || !c.live {
		return
	}
	c.answered()
	c.step(sigStart)
	if c.mode != Realtime {
		c.tellEars(earsMute{})
	}
}

// answered lets go of what was said: the answer can no more be undone.
func (c *Conversation) answered() {
	for _, u := range c.heard {
		u.cancel(ErrDone)
	}
	c.heard = nil
}

// turnOver takes in what a turn left behind, and begins the next.
func (c *Conversation) turnOver(t *turn) {
	if t != c.turn {
		return
	}
	c.turnDone = true
	c.touch()
	c.remember(t)
	if t.out.hangUp {
		c.hangUp(ErrGoodbye)
	}
	if c.live {
		c.live = false
		c.answered()
		c.step(sigPlayedOut)
		c.listenAgain()
	}
	c.turn = nil // with its buffers and its encoder: most devices are silent most of the time
	if ord := c.pending; ord != nil {
		c.pending = nil
		c.begin(*ord)
	}
}

// remember puts a turn into the history and writes its one log line.
func (c *Conversation) remember(t *turn) {
	c.dev.history.add(t.out.messages...)
	c.dev.history.cut(c.o.HistoryTokens, c.count)
	for _, l := range c.lateCalls {
		c.dev.history.replaceResult(l.prepared.Call.ID, dispatch(l.response, c.language()).result)
	}
	c.lateCalls = nil
	log := t.log.With("cause", t.out.cause, "interrupted", t.out.cut, "heard_chars", t.out.heard)
	if t.out.err != nil {
		log.Warn("turn", append(t.timing.attrs(t.floor), "err", t.out.err)...)
	} else {
		log.Info("turn", t.timing.attrs(t.floor)...)
	}
	if text := answerText(t.out.messages); text != "" {
		c.out.Send(Message{Kind: MessageFinal, Turn: t.id, Text: text})
	}
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
