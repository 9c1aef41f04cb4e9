package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"
	core "xiaozhi/agent/turn"

	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

// This file is the conversation's hearing side: what the microphone and the
// keyboard bring, until a turn is ordered.

// frame passes a microphone frame to the ears. While no listening is on it is
// thrown away, but counted: a burst of frames tells a wake word from typed text.
func (c *Conversation) frame(p wire.Packet) {
	if c.open {
		if c.ears != nil {
			c.ears.in.Put(p)
		}
		return
	}
	now := time.Now()
	if now.Sub(c.stopped) < lateFrames {
		return
	}
	c.burst = append(c.burst, now)
	if len(c.burst) > burstFrames {
		c.burst = c.burst[1:]
	}
}

// listenStart opens the ears. A reply that is going on is cut, unless it
// answers the detect that came right before.
func (c *Conversation) listenStart(mode wire.Mode) {
	c.touch()
	c.mode, c.open = mode, true
	c.monitor.Open(mode == wire.Realtime)
	c.loopback.Open(mode == wire.Realtime)
	c.burst = c.burst[:0]
	recent := time.Since(c.detected) < afterDetect
	if c.greeting != "" {
		c.openEars()
		c.greetNow()
		return
	}
	if c.busy() && recent {
		c.openEars()
		if c.state == Speaking {
			c.earsWhileSpeaking()
		}
		return
	}
	if c.busy() {
		cause := ErrAborted
		if c.playsMusic() {
			cause = ErrPaused
		}
		c.takeAway(cause)
	}
	c.forget()
	c.openEars()
	c.step(sigListen)
}

// listenStop ends a push-to-talk utterance; in the other modes it closes the microphone.
func (c *Conversation) listenStop() {
	c.touch()
	c.open, c.stopped = false, time.Now()
	c.monitor.Open(false)
	c.loopback.Open(false)
	c.tellEars(earsStop{})
}

// detect is a wake word to be greeted, or typed text to be answered.
func (c *Conversation) detect(text string) {
	c.touch()
	now := time.Now()
	burst := len(c.burst) >= burstFrames && now.Sub(c.burst[0]) <= burstWindow+burstWindow/2
	c.burst = c.burst[:0]
	c.detected = now
	c.greeting = ""
	c.greet.Stop()
	if c.busy() {
		c.takeAway(ErrReplaced)
		c.step(sigPlayedOut)
	}
	c.forget()
	if c.open {
		c.openEars() // the sound of the wake word is no utterance
	}
	text = strings.TrimSpace(text)
	if burst || text == "" || isOneOf(text, c.o.WakeWords) {
		if text == "" {
			text = "…"
		}
		c.greeting = text
		c.greet.Reset(greetAfter)
		return
	}
	if r := []rune(text); len(r) > maxTyped {
		c.log.Warn("typed text is cut", "chars", len(r), "limit", maxTyped)
		text = string(r[:maxTyped])
	}
	c.empties = 0
	c.forgetSlow()
	c.step(sigText)
	c.begin(c.answer(text, &timing{endOfSpeech: now, endpoint: now, transcript: now}))
}

// greetNow answers a wake word.
func (c *Conversation) greetNow() {
	if c.greeting == "" {
		return
	}
	word := c.greeting
	c.greeting = ""
	c.greet.Stop()
	c.forget()
	c.step(sigServer)
	now := time.Now()
	c.begin(order{
		stt: word, phrase: prompts.Greeting, language: c.language(),
		timing: &timing{endOfSpeech: now},
	})
}

// abort stops the reply at once. It gets exactly one tts stop, also when
// nothing is going on (device-protocol 3.2.4).
func (c *Conversation) abort(reason string) {
	stopped := c.stopReply(reason)
	if !stopped {
		c.did(core.Send{Kind: wire.MessageTTSStop})
		c.out.Send(wire.Message{Kind: wire.MessageTTSStop})
	}
	c.step(sigAbort)
	if c.open && c.mode != wire.Manual {
		c.openEars() // what was said before the abort is not answered after it
	}
}

// stopReply ends whatever is going on, and reports whether tts stop was sent.
func (c *Conversation) stopReply(reason string) (stopped bool) {
	c.touch()
	c.log.Debug("abort", "reason", reason, "state", c.state)
	c.greeting = ""
	c.greet.Stop()
	c.forgetSlow()
	if c.busy() {
		cause := ErrAborted
		if c.playsMusic() && strings.Contains(reason, "wake") {
			cause = ErrPaused // the wake word pauses music, the button ends it
		}
		stopped = c.takeAway(cause)
	} else if c.dev.song != nil && !strings.Contains(reason, "wake") {
		c.did(core.EndMusic{})
		c.dev.endSong()
	}
	c.forget()
	return stopped
}

// openEars begins listening afresh in the present mode.
func (c *Conversation) openEars() {
	c.stretch++
	c.voiced.Store(false)
	c.endTrial(ErrReplaced)
	commit := c.dev.pause.delay(c.commitAfter(), intent.Undecided)
	c.did(core.Listen{Epoch: c.stretch, Mode: c.mode, Silence: commit, Lang: langOf(c.language())})
	if c.ears != nil && c.ears.mode == c.mode {
		c.tellEars(earsOpen{c.stretch, commit})
		return
	}
	c.closeEars(ErrReplaced)
	e := &ears{
		o: c.o, mode: c.mode, stretch: c.stretch, commits: commit, lang: c.language(), log: c.log,
		report: c.report, in: wire.NewQueue[earsCommand](), monitor: c.monitor, loopback: c.loopback, wg: &c.wg,
		child: c.child, garbled: &c.garbled,
	}
	e.phrases = func() []string {
		if c.o.Phrases == nil {
			return nil
		}
		return c.o.Phrases("en", deviceSpecs(c.tools)) // the device's own names: others would only be misheard
	}
	ctx, stop := c.child()
	c.ears, c.earsStop = e, stop
	c.wg.Go(func() { e.run(ctx) })
}

func (c *Conversation) closeEars(cause error) {
	if c.ears != nil {
		c.earsStop(cause)
		c.ears, c.earsStop = nil, nil
	}
}

func (c *Conversation) tellEars(ev earsCommand) {
	switch ev := ev.(type) {
	case earsWatch:
		c.did(core.Watch{On: ev.on})
	case earsMute:
		c.did(core.Mute{})
		c.voiced.Store(false) // nobody is heard any more
	case earsStop:
		c.did(core.EndUtterance{})
	case earsAwait:
		c.did(core.AwaitSilence{Silence: ev.silence})
	}
	if c.ears == nil {
		return
	}
	if err := c.ears.in.Post(ev); err != nil { // the ears hang in a recogniser that breaks its contract
		c.log.Error("ears do not keep up", "err", err)
		c.closeEars(err)
	}
}

// listenAgain goes back to listening after a reply, without waiting for a
// listen start that not every client sends.
func (c *Conversation) listenAgain() {
	if c.open && !c.hungUp && (c.mode == wire.Auto || (c.mode == wire.Realtime && c.ears == nil)) {
		c.openEars()
	}
}

// deaf is what happens when the ears are gone.
func (c *Conversation) deaf(f earsFailed) {
	if f.ears != c.ears {
		return
	}
	c.closeEars(f.err)
	c.log.Error("hearing failed", "err", f.err)
	c.forget()
	c.deafness++
	if !c.busy() {
		c.step(sigServer)
		c.begin(order{
			phrase: prompts.FailInternal, failed: f.err, hangUp: c.deafness >= maxDeaf,
			language: c.language(), timing: &timing{},
		})
	}
}

// voice is the beginning of an utterance. Between the commit and tts start it
// undoes the turn: the user has not finished.
func (c *Conversation) voice(u *utterance) {
	c.touch()
	if u.stretch != c.stretch {
		return
	}
	c.voiced.Store(true)
	if c.state == Speaking {
		c.overlap.u, u.overlaps = u, true
	}
	if c.state != Recognizing && c.state != Thinking {
		return
	}
	if n := len(c.heard); n > 0 {
		c.dev.pause.cutOff(time.Since(c.heard[n-1].spoken) - c.o.Endpoint.WithDefaults().MinSpeech)
	}
	if c.busy() {
		switch {
		case len(c.heard) == 0 && !c.tells():
			return // nobody said what is being answered
		case c.pending == nil && !c.turn.floor.undo():
			c.holdFor(u)
			return
		case c.pending == nil:
			c.live = false
			c.did(core.Cut{Turn: c.turn.id, Cause: ErrResumed})
			c.turn.cancel(ErrResumed)
			c.unsay(c.turn.undo)
		default:
			c.unsay(*c.pending)
		}
	}
	c.dropPending()
	c.step(sigResume)
}

// tells reports whether the turn that runs is the server's own.
func (c *Conversation) tells() bool {
	return c.turn != nil && c.pending == nil && c.turn.order.notice != nil
}

// utteranceOver waits for the text of what was said, if it is to be answered.
func (c *Conversation) utteranceOver(u *utterance) {
	c.touch()
	c.deafness = 0
	u.over = true
	if u.stretch == c.stretch {
		c.voiced.Store(false)
	}
	if u.echoed && !u.cut && !u.final { // whatever a recogniser makes of it, if it ever does
		u.final, u.own, u.textAt = true, true, time.Now()
	}
	switch {
	case c.hungUp:
		u.cancel(ErrReplaced)
	case u.stretch == c.stretch && (c.state == Listening || c.state == Recognizing):
		if u.own {
			c.disregard(u)
			return
		}
		c.await(u)
	case c.isOver(u):
		c.overlapOver(u)
		if u.own {
			c.interject(u, u.text, true)
		}
	default:
		c.endTrial(ErrReplaced)
		u.cancel(ErrReplaced)
	}
}

// await takes an utterance that is over as one that is to be answered.
func (c *Conversation) await(u *utterance) {
	c.heard = append(append(c.slow, c.heard...), u)
	c.slow = nil
	c.textDue.Reset(c.textWithin(u))
	c.step(sigEndpoint)
	c.answerHeard()
}

// text takes in the final text of an utterance.
func (c *Conversation) text(h heardText) {
	u := h.u
	if u.final || h.n != u.hearing {
		return // too late
	}
	u.final, u.text, u.err, u.textAt, u.own = true, h.transcript, h.err, time.Now(), h.own
	if u.over {
		u.cancel(ErrDone)
	}
	switch {
	case slices.Contains(c.slow, u):
		c.awaitCalm()
	case c.isOver(u):
		c.interject(u, u.text, true)
	case u.over:
		c.answerHeard()
	case !u.own:
		c.drafted(u)
	}
}

// giveUpText gives up on recognisers that do not come to an end.
func (c *Conversation) giveUpText() {
	for _, u := range slices.Concat(c.slow, c.heard, c.beside) {
		if !u.final {
			u.final, u.textAt = true, time.Now()
			u.err = fmt.Errorf("%w: no transcript within %s", ErrFailed, c.o.RecognizeTimeout)
			u.cancel(u.err)
		}
	}
	c.letGoBeside()
	c.answerHeard()
	c.awaitCalm()
}

// answerHeard begins the answer when the text of all that was said is there.
func (c *Conversation) answerHeard() {
	if c.state != Recognizing || len(c.heard) == 0 {
		return
	}
	if last := c.heard[len(c.heard)-1]; last.final {
		c.dropSlow(false) // the user has said it again, or something else
	}
	for _, said := range c.heard {
		if !said.final {
			return
		}
	}
	if c.nothingMeant() {
		c.forget()
		c.step(sigResume)
		c.awaitCalm() // what waited to be told was put off by it
		return
	}
	o := c.understood()
	c.dev.pause.turn()
	c.step(sigFinal)
	if !c.adopt(o) {
		c.begin(o)
	}
}

// forget drops all that was said and not yet answered.
func (c *Conversation) forget() {
	for _, u := range c.heard {
		u.cancel(ErrReplaced)
	}
	c.heard = nil
	c.forgetBeside(nil)
	c.trials, c.discarded = 0, 0
	if len(c.slow) == 0 {
		c.textDue.Stop()
	}
	c.endTrial(ErrReplaced)
	c.dropPending()
}
