package agent

import (
	"errors"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/speak"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
)

// perform does what an event has led to. It never waits.
func (c *Conversation) perform(e turn.Effect) {
	switch e := e.(type) {
	case turn.Begin:
		c.begin(e)
	case turn.Remember:
		c.remember(c.reply)
		c.reply = nil // with its buffers and its encoder: most devices are silent most of the time
		c.follow.renew()
	case turn.Discard:
		c.env.Log.Debug("speculation discarded", "turn", e.Turn, "cause", c.reply.out.cause)
		c.void.Add(c.reply.times)
		c.reply = nil
	case turn.Send:
		c.out.Send(wire.Message{Kind: e.Kind})
	case turn.EndMusic:
		for l := range each[feature.Lasting](c.features) {
			l.End()
		}
	case turn.Answer:
		if answer := c.asked.answer; answer != nil && c.asked.id == e.ID {
			c.asked.answer = nil
			answer(feature.Answer{
				Words: e.Words, Doubtful: e.Unsaid || c.asked.overtaken, Speaker: c.speaking(e.Speaker), Sound: c.mic.soundOf(e.Heard),
			})
		}
	case turn.Drop:
		if n, ok := c.dev.queue.drop(e.Announcement); ok && n.Done != nil {
			n.Done(feature.Told{})
		}
	case turn.Ignored:
		c.env.Log.Debug("echo of the reply is no speech", "utterance", e.ID)
	case turn.NotUnderstood:
		c.mic.rejected = true
		c.env.Log.Info("transcript rejected", "provider", e.Text.Provider, "chars", len([]rune(e.Text.Words)))
		c.env.Log.Debug("rejected guess", "guess", text.Cut(e.Text.Words, 128))
	case turn.NoRecognizer:
		c.env.Log.Warn("speech is not English, and no Chinese recogniser is configured",
			"hint", "add a Chinese-capable section to asr in the config")
	case turn.HangUp:
		c.env.Log.Info("hanging up", "cause", e.Cause)
		c.out.HangUp(e.Cause)
	default:
		if !c.mic.perform(e) {
			c.control(e)
		}
	}
}

func (c *Conversation) control(e turn.Effect) {
	r := c.reply
	switch e := e.(type) {
	case turn.Adopt:
		r.marks.adopted, r.marks.heard, r.marks.words, r.marks.speaker = true, e.Request.Heard, e.Request.Words, e.Request.Speaker
		r.player.Reword(e.Request.Shown)
		r.times.Commit(e.Request.Times)
	case turn.Commit:
		r.player.Open()
	case turn.Hold:
		r.player.Hold()
	case turn.Start:
		r.player.Start()
	case turn.AllowTool:
		r.allow <- struct{}{}
	case turn.Pause:
		r.player.Pause()
	case turn.Resume:
		r.player.Resume()
		r.marks.pauses++
	case turn.Interpose:
		r.speaker.Interpose(e.Phrase, e.Lang)
	case turn.Stop:
		r.player.Stop()
	case turn.Cut:
		r.player.Cut()
		r.cancel(e.Cause)
	}
}

func (c *Conversation) begin(e turn.Begin) {
	o := order{Request: e.Request}
	if e.Request.Announcement != 0 {
		o.tells = c.dev.queue.take(e.Request.Announcement)
		c.asked.overtaken = c.asked.overtaken || !e.Request.Music
		if o.tells.Sound != nil {
			o.tells.sound = o.tells.Sound()
		}
	}
	if e.Request.Allow && c.asked.turn == e.Request.Consent.ID {
		o.allow = &c.asked.call
	}
	c.mic.tellRequest(&o)
	ctx, cancel := c.life.child()
	c.reply = newReply(c, e.Turn, o, cancel)
	r := c.reply
	if e.Request.Shown != "" {
		r.player.Send(wire.Message{Kind: wire.MessageSTT, Text: e.Request.Shown})
	}
	c.life.wg.Go(func() {
		if err := speak.Protect(r.log, "turn", func() error { r.run(ctx); return nil }); err != nil {
			r.out = outcome{cause: turn.ErrFailed, err: err}
		}
		c.post(func() {
			r.understood()
			r.reword()
			c.step(c.finished(r))
		})
	})
}

// finished returns what the end of a turn's goroutines means to the rules.
func (c *Conversation) finished(r *reply) turn.Event {
	e := turn.Finished{Turn: r.id, Played: r.out.played, HangUp: r.out.hangUp}
	if r.aloud != nil {
		e.Words = r.marks.words
	}
	if r.out.asked != nil {
		e.Consent = turn.Consent{ID: r.id, Action: r.out.asked.Action, By: r.out.asked.By}
		c.asked.turn, c.asked.call = r.id, *r.out.asked
	}
	if asked := r.order.Consent; r.asksAgain() && (!asked.Overtaken || think.HeardQuestion(think.Answer(r.out.messages), r.fixed())) {
		e.Consent = turn.Consent{ID: asked.ID, Action: asked.Action, Again: true, By: asked.By}
	}
	if n := r.order.tells; n != nil && n.Answer != nil && !r.marks.withdrawn && think.Answer(r.out.messages) != "" {
		c.asked.id, c.asked.answer, c.asked.overtaken = n.id, n.Answer, false
		e.Ask = n.id
	}
	return e
}

// remember puts a turn into the history and writes its one log line.
func (c *Conversation) remember(r *reply) {
	before := c.dev.history.Said()
	if r.marks.forgotten {
		c.dev.history.Add() // what was to be corrected of it is gone
	} else {
		c.dev.history.Add(r.out.messages...)
		r.marks.dropped = c.dev.history.Trim(c.o.HistoryTokens, c.o.Tokens)
		if r.aloud != nil && !r.aloud.instead && !r.aloud.answer.Owes() || len(r.out.messages) == 0 {
			c.duplex.goesOn(before, c.dev.history.Said())
		}
	}
	if n := r.order.tells; n != nil {
		c.told(r, *n)
	}
	log := r.log.With("cause", r.out.cause, "interrupted", r.out.cut, "heard_chars", r.out.heard)
	if r.marks.pauses > 0 {
		log = log.With("false_alarms", r.marks.pauses)
	}
	figures := r.times.Figures(r.player)
	if r.out.err != nil {
		log.Warn("turn", append(figures.Attrs(), "err", r.out.err)...)
	} else {
		log.Info("turn", figures.Attrs()...)
	}
	c.o.tell(endOf(r, figures))
	c.keep(r, figures)
	// One final for each reply, also for one of which nothing was heard.
	if words := text.Join(think.Answer(r.out.messages), r.out.beside); words != "" || r.player.Showed() {
		c.out.Send(wire.Message{Kind: wire.MessageFinal, Turn: r.id, Text: words})
	}
}

// told tells whoever announced something what became of it, or puts back what was
// not heard.
func (c *Conversation) told(r *reply, n announcement) {
	out := &r.out
	switch {
	case n.Done != nil:
		n.Done(feature.Told{Heard: think.Answer(out.messages), Whole: !out.cut && out.err == nil, Played: out.played, Cause: out.cause, Err: out.err})
	case !out.cut || errors.Is(out.cause, turn.ErrFailed):
	case n.Sound != nil && out.played > 0 && (n.SoundTells || errors.Is(out.cause, turn.ErrAborted)):
		// The sound was heard, and it says all, or the button has ended it.
	case out.heard == 0:
		c.dev.queue.putBack(n)
	default:
		c.dev.queue.putBack(unheard(n.parts, out.heard)...)
	}
}

// wakeBurst tells a wake word from typed text: firmware sends the sound of a
// wake word, some frames in quick succession, before it names the word.
type wakeBurst struct {
	frames  []time.Time // arrivals while nobody listened, at most burstFrames
	stopped time.Time   // the last listen stop
}

const (
	burstFrames = 8 // so many frames in burstWindow before a detect mark a wake word
	burstWindow = time.Second
	lateFrames  = 500 * time.Millisecond // so long after listen stop frames of the utterance still come
	maxTyped    = 8000                   // characters of typed text; more is cut
)

func (b *wakeBurst) reset() { b.frames = b.frames[:0] }

func (b *wakeBurst) frame(now time.Time) {
	if now.Sub(b.stopped) < lateFrames {
		return
	}
	b.frames = append(b.frames, now)
	if len(b.frames) > burstFrames {
		b.frames = b.frames[1:]
	}
}

// before reports whether a burst has just come, and forgets it.
func (b *wakeBurst) before(now time.Time) bool {
	burst := len(b.frames) >= burstFrames && now.Sub(b.frames[0]) <= burstWindow+burstWindow/2
	b.reset()
	return burst
}
