package agent

import (
	"strings"
	"time"
	core "xiaozhi/agent/turn"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
)

// This file is what becomes of voice over a reply, where the microphone stays
// open (realtime mode; voice.md 1.2). Voice alone only pauses the reply, and not
// where the microphone is known to hear the reply itself. The words decide: a
// request or a stop-word cuts the reply, anything else lets it go on where it
// stopped.

const (
	// decideWithin is how long after the end of the voice the words have to be
	// there, else the reply goes on. Ears notice the end one trigger later.
	decideWithin = 900 * time.Millisecond
	// maxHush is how long a reply is paused for voice without words.
	maxHush = 3 * time.Second
	// maxFalse is how often a reply is paused for nothing.
	maxFalse = 3
	// quietReply is how long a reply has to be that nothing comes back from before
	// the microphone is trusted again.
	quietReply = 3 * time.Second
	// echoMemory is how long what was played may come back into the microphone.
	echoMemory = 3 * time.Second
)

// overlap is what is said over the reply that is spoken.
type overlap struct {
	u      *utterance // nil: nothing
	hushed bool       // the reply is paused for it
}

// lastSaid is what the reply before has said, for echoes that come late.
type lastSaid struct {
	text string
	at   time.Time
}

// isOver reports whether an utterance is said over a reply that is spoken, or that
// is thought about and can no more be undone.
func (c *Conversation) isOver(u *utterance) bool {
	return u.overlaps && u.stretch == c.stretch && c.turn != nil && c.pending == nil &&
		(c.state == Speaking || c.state == Thinking)
}

// bargeIn is voice that is long enough to cut a reply. One that is spoken is
// paused; the words decide, there and where it is still thought about.
func (c *Conversation) bargeIn(u *utterance, own bool) {
	if u.stretch != c.stretch || c.mode != wire.Realtime || !c.busy() {
		return
	}
	switch c.state {
	case Thinking:
		if c.turn == nil || c.pending != nil { // it has not begun
			c.takeAway(ErrBargeIn)
			c.answered()
			c.step(sigBargeIn)
			return
		}
		c.overlap.u, u.overlaps = u, true
		c.tellEars(earsWatch{true})
	case Speaking:
		c.overlap.u, u.overlaps = u, true
		if own {
			c.hearsItself()
		}
		if !c.dev.echoes && c.turn.alarms < maxFalse && !c.turn.floor.holds() && c.turn.floor.pause() {
			c.did(core.Pause{Turn: c.turn.id})
			c.overlap.hushed = true
			c.hushDue.Reset(maxHush)
		}
	case Idle, Listening, Recognizing, Closed:
	}
}

// holdFor keeps an answer back that cannot be undone, for a tool has acted, while
// the user goes on: with its tts start the device would close its microphone. The
// words decide, as they do over a reply. In realtime mode it stays open.
func (c *Conversation) holdFor(u *utterance) {
	if c.mode != wire.Auto || c.state != Thinking || !c.turn.floor.recall() && !c.overlap.hushed {
		return
	}
	if !c.overlap.hushed {
		c.did(core.Hold{Turn: c.turn.id})
	}
	c.overlap, u.overlaps = overlap{u, true}, true
	c.hushDue.Reset(maxHush)
	c.tellEars(earsWatch{true})
}

// guessed takes in what was understood of an utterance that goes on.
func (c *Conversation) guessed(g heardGuess) {
	if c.isOver(g.u) && !g.u.final && !g.u.slow {
		g.u.own = g.own
		c.interject(g.u, g.text, false)
	}
}

// interject decides by its words what an utterance over a reply means. They are
// all of it if whole is set, else it goes on.
func (c *Conversation) interject(u *utterance, said providers.Transcript, whole bool) {
	switch kind := c.meant(u, said); kind {
	case intent.Stop, intent.Request:
		if c.mode != wire.Realtime && c.state == Speaking {
			u.kept = whole // the microphone is closed: it is answered after the reply
		} else if !c.turn.floor.holds() {
			c.cutIn(u, kind == intent.Stop)
			return
		}
	case intent.Noise, intent.Backchannel:
	}
	if whole {
		c.goOn()
	}
	if whole && u.over {
		c.letGoBeside()
	}
}

// overlapOver takes an utterance over a reply that has come to its end. If its
// text has not decided yet, it will.
func (c *Conversation) overlapOver(u *utterance) {
	c.beside = append(c.beside, u)
	c.textDue.Reset(c.o.RecognizeTimeout)
	c.letGoBeside()
}

// letGoBeside lets go of what was said over a reply and has not cut it.
func (c *Conversation) letGoBeside() {
	waiting := c.beside[:0:0]
	for _, u := range c.beside {
		if u.final {
			u.cancel(ErrDone)
		}
		if !u.final || u.kept {
			waiting = append(waiting, u)
		}
	}
	c.beside = waiting
}

// forgetBeside lets go of all of it but u.
func (c *Conversation) forgetBeside(u *utterance) {
	for _, said := range c.beside {
		if said != u {
			said.cancel(ErrReplaced)
		}
	}
	c.beside = nil
}

// meant is what words over a reply mean. Those of the reply itself mean nothing.
func (c *Conversation) meant(u *utterance, said providers.Transcript) intent.Kind {
	if u.own {
		c.hearsItself()
		return intent.Noise
	}
	if said.Rejected {
		return intent.Noise
	}
	kind := intent.Classify(said.Text, text.Lang(c.textLanguage(said.Text)), c.o.StopWords)
	if kind != intent.Request && kind != intent.Backchannel {
		return kind
	}
	saying := c.saying()
	if !c.o.NoEchoGuard && intent.Echo(said.Text, saying) {
		c.hearsItself()
		return intent.Noise
	}
	if strings.ContainsAny(saying, "?？") {
		return intent.Request // it is an answer
	}
	return kind
}

// hearsItself notes that the microphone hears what the device plays.
func (c *Conversation) hearsItself() {
	c.dev.echoes = true
	c.log.Debug("echo of the reply is no speech")
}

// disregard takes an utterance for what it is: the device's own sound. What was
// said before it is awaited as it was.
func (c *Conversation) disregard(u *utterance) {
	c.hearsItself()
	u.cancel(ErrDone)
	if len(c.heard) > 0 {
		c.step(sigEndpoint)
		c.answerHeard()
		return
	}
	c.awaitCalm()
}

// saying is what the device has played in the last seconds.
func (c *Conversation) saying() string {
	now := time.Now()
	if c.state == Speaking && c.turn != nil {
		return strings.Join(c.turn.floor.saying(now), " ")
	}
	if now.Sub(c.lastSaid.at) < 2*echoMemory { // the echo, and its recognition
		return c.lastSaid.text
	}
	return ""
}

// cutIn ends the reply; the utterance that cuts it is answered. A stop-word does
// to music, and to what is told, what the button does: it does not begin again.
func (c *Conversation) cutIn(u *utterance, stop bool) {
	cause := ErrBargeIn
	if stop && c.turn.order.notice != nil {
		cause = ErrAborted
	}
	u.cut = true
	c.hushDue.Stop()
	c.overlap = overlap{}
	c.tellEars(earsWatch{false})
	c.takeAway(cause)
	c.forgetBeside(u)
	c.answered()
	c.step(sigBargeIn)
	switch {
	case u.over:
		c.await(u)
	case u.final:
		c.drafted(u)
	}
}

// goOn lets a reply go on that was paused for nothing.
func (c *Conversation) goOn() {
	c.hushDue.Stop()
	if !c.overlap.hushed {
		return
	}
	c.overlap.hushed = false
	switch {
	case c.turn == nil:
	case c.turn.floor.resume():
		c.did(core.Resume{Turn: c.turn.id})
		c.turn.alarms++
		c.touch()
	default:
		c.did(core.Commit{Turn: c.turn.id})
		if c.turn.floor.grant() {
			c.speaking(c.turn)
		}
	}
}

// overlapPaused gives the words a time limit, for nobody speaks any more.
func (c *Conversation) overlapPaused(u *utterance) {
	if c.overlap.hushed && c.overlap.u == u {
		c.hushDue.Reset(decideWithin - c.o.Endpoint.WithDefaults().Trigger)
	}
}

// overlapResumed takes that limit back.
func (c *Conversation) overlapResumed(u *utterance) {
	if c.overlap.hushed && c.overlap.u == u {
		c.hushDue.Reset(maxHush)
	}
}

// replyOver ends what was said over a reply that has come to its own end: what
// is not decided yet is an utterance like any other, unless it means nothing.
func (c *Conversation) replyOver(t *turn) {
	now := time.Now()
	if c.mode == wire.Realtime && c.overlap.u == nil && t.out.played > quietReply {
		c.dev.echoes = false
	}
	undecided := c.beside
	c.beside = nil
	c.answered()
	c.step(sigPlayedOut)
	c.hushDue.Stop()
	c.overlap = overlap{}
	c.lastSaid = lastSaid{strings.Join(t.floor.saying(now), " "), now}
	if c.mode == wire.Realtime {
		c.tellEars(earsWatch{false})
	}
	for _, u := range undecided {
		if c.state == Listening || c.state == Recognizing {
			c.detected = now // the listen start that follows a reply belongs to it
			c.await(u)
		} else {
			u.cancel(ErrReplaced)
		}
	}
}

// nothingMeant reports whether all that was said needs no answer: a sound or a
// back-channel over a reply, an echo, or the word that has stopped the reply.
func (c *Conversation) nothingMeant() bool {
	if c.asked != nil {
		return false
	}
	for _, u := range c.heard {
		if u.own && !u.cut {
			c.hearsItself()
			continue
		}
		if u.err != nil || !u.overlaps && !u.own {
			return false
		}
		switch c.meant(u, u.text) {
		case intent.Request:
			return false
		case intent.Stop:
			if !u.cut {
				return false
			}
		case intent.Noise, intent.Backchannel:
			if u.cut && bare(u.text.Text) != "" {
				return false // the words that cut the reply are there in part
			}
		}
	}
	return true
}
