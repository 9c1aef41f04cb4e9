package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/speak"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// order is a request with what its numbers stand for.
type order struct {
	turn.Request
	tells *announcement // of Announcement; nil: the turn has a user's utterance
	allow *think.Asked  // the call that Allow is about: it is made before anything else
}

type outcome struct {
	messages []providers.Message // for the history
	hangUp   bool
	cause    error         // how it ended
	err      error         // what failed, for the log; nil if nothing did
	cut      bool          // the user did not hear all of it
	heard    int           // characters of the answer that were heard
	played   time.Duration // how much of its sound the device has played
	beside   string        // what was heard beside the answer
	asked    *think.Asked  // what the user was asked to allow; nil: nothing
}

// author is whom a turn is of, as the keeper is told.
type author struct {
	name     string
	revision int
}

// reply is one turn at work: run has the responder answer, and joins the
// goroutines of the speaker. It is the gate by which the responder asks for what
// the turn may do. The conversation reads out after run has returned.
type reply struct {
	id      uint64
	order   order
	log     *slog.Logger
	player  *speak.Player
	speaker *speak.Speaker
	times   *timeline.Turn
	answer  *think.Responder
	aloud   *aloud   // nil: its words are answered
	exits   []string // words that end the conversation when they are all that was said
	private bool     // whom it is of forgets what was said
	by      author
	prompts *prompts.Set
	version uint64 // of the history that it knows
	cancel  context.CancelCauseFunc
	report  func(turn.Event)
	allow   chan struct{} // size 1: the leave to run a tool
	record  Record
	sent    *audio.Packets // the sound that went to the device; nil: it is not recorded
	out     outcome

	marks marks // of the conversation
}

// marks hold what the conversation notes of a turn that runs.
type marks struct {
	forgotten bool     // the user asked to forget: nothing of it is kept
	adopted   bool     // it began as a speculation and is the answer
	withdrawn bool     // nobody waits for the announcement any more
	pauses    int      // false interruptions
	heard     []uint64 // the utterances that it answers
	dropped   bool     // with it, turns of before do not fit the history any more
	words     string   // of the user; a speculation began with the same but for punctuation
	speaker   turn.Speaker
}

// newReply makes the turn of an order. It may be seen and heard at once, unless
// it is a speculation.
func newReply(c *Conversation, id uint64, o order, cancel context.CancelCauseFunc) *reply {
	log := c.env.Log.With("turn", id)
	persona, session := c.cast(&o)
	speaker := c.speaking(o.Speaker)
	spoken, thought := c.speak, c.think
	spoken.TTS, thought.LLM, spoken.Home = persona.TTS, persona.LLM, text.Lang(session.Language)
	r := &reply{
		id: id, order: o, log: log, times: timeline.New(o.Times), version: c.dev.history.Version(), cancel: cancel,
		report: c.report, allow: make(chan struct{}, 1),
		exits: persona.ExitWords, private: persona.Forgets, by: author{persona.Name, persona.Revision}, prompts: c.o.Prompts,
		player: speak.NewPlayer(c.out, id, c.o.Reply, c.o.Coding, c.o.Lead),
	}
	if r.record = c.recorded(persona, &o); r.record == RecordBoth {
		r.sent = &audio.Packets{}
	}
	r.player.Follow(speak.Taps{FarEnd: c.mic.o.FarEnd, SelfEcho: c.mic.o.SelfEcho, Sent: r.sent}, &c.o.Devices.clock, c.pacer)
	c.pacer = r.player.Pacer()
	r.marks.heard, r.marks.words, r.marks.speaker = o.Heard, o.Words, o.Speaker
	if o.Sound {
		r.aloud = newAloud(c, persona, &o)
	}
	if o.Speculative {
		r.player.Hold()
	}
	r.speaker = speak.NewSpeaker(&spoken, log, r.player, r.times, session.Voice, c.report)
	tools := think.Tools{
		Router: c.env.Tools, Budget: &c.dev.calls, Knows: func(name string) bool { return host{c}.HandlerOf(name) != nil },
		Handle: func(ctx context.Context, name string, args any) (did think.Handled, ran bool, err error) {
			ran, err = c.ask(ctx, id, func() (err error) {
				did, err = host{c}.HandlerOf(name)(feature.Caller{Lang: o.Lang, Turn: id, Speaker: speaker}, args)
				return err
			})
			if err == nil && ran {
				did, err = did.Finished(ctx)
			}
			return did, ran, err
		},
	}
	for calls := range each[feature.Calls](c.features) {
		tools.Late, tools.Job = calls.Late, calls.Begin
	}
	r.answer = think.New(&thought, think.Turn{
		ID: id, Words: o.Words, Lang: o.Lang, Allow: o.allow, History: c.dev.history.Snapshot(), Role: persona.Prompt, Text: persona.Text,
		Session: session, Agent: persona.Name, Dialog: c.dialogue(), Speaker: speaker, Notes: notesOf(c, persona.Name, text.Lang(session.Language)),
	}, think.Outlet{Player: r.player, Speaker: r.speaker, Times: r.times}, r, tools, log)
	if r.aloud != nil {
		r.aloud.answer = think.NewAloud(r.answer, r.aloud.sounds)
	}
	return r
}

// understood takes the user's words over from who has answered them by their sound. It is for the
// conversation, after run has returned.
func (r *reply) understood() {
	if r.aloud != nil {
		r.marks.words = r.answer.Words()
	}
}

// reword puts the user's final words in place of those that a speculation began with. It is
// for the conversation, after run has returned.
func (r *reply) reword() {
	for i := range r.out.messages {
		if m := &r.out.messages[i]; m.Role == providers.RoleUser && m.Content == r.order.Words {
			m.Content = r.marks.words
			return
		}
	}
}

// Tool waits for the leave to run a tool. With start, tts start goes first: the
// tool holds the device's main task, and a later one would wait behind it.
func (r *reply) Tool(ctx context.Context, start bool) error {
	if start {
		r.player.Announce(false)
	}
	r.report(turn.ToolWanted{Turn: r.id, Start: start})
	select {
	case <-r.allow:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AwaitsModel says that the turn waits for the model, until over is called.
func (r *reply) AwaitsModel() (over func()) { return r.awaits(turn.Model) }

// AwaitsTool says that the turn waits for a tool, until over is called.
func (r *reply) AwaitsTool() (over func()) { return r.awaits(turn.Tool) }

// Advanced says that a tool that is waited for has done so much of its work: 0 to 1.
func (r *reply) Advanced(done float64) { r.report(turn.Advanced{Turn: r.id, Done: done}) }

func (r *reply) awaits(what turn.WaitFor) (over func()) {
	r.report(turn.Waiting{Turn: r.id, For: what})
	return func() { r.report(turn.Waited{Turn: r.id, For: what}) }
}

// Firm says that voice does not interrupt the turn any more.
func (r *reply) Firm() { r.report(turn.Firmed{Turn: r.id}) }

func (r *reply) respond(ctx context.Context) error {
	switch {
	case r.order.Recorded:
		return r.answer.PlayPhrase(ctx, r.order.Phrase)
	case r.order.Wording != "":
		return r.answer.SayInstead(ctx, r.order.Phrase, r.order.Wording)
	case r.order.Phrase != "":
		return r.answer.SayPhrase(ctx, r.order.Phrase)
	case r.order.Answer != "":
		return r.answer.Say(ctx, r.fixed())
	case r.order.tells != nil:
		return r.tell(ctx, r.order.tells)
	case r.order.Words == "" && !r.order.Sound || r.order.Told:
		return nil // nothing but the start/stop pair
	}
	return r.answerWords(ctx)
}

// answerWords answers what the user has said.
func (r *reply) answerWords(ctx context.Context) error {
	switch {
	case text.In(r.order.Words, r.exits), len(r.exits) > 0 && text.In(r.order.Words, r.prompts.Words(r.order.Lang).Exit):
		r.answer.Goodbye()
		return r.answer.Say(ctx, r.prompts.Phrase(prompts.Goodbye, string(r.order.Lang)))
	case r.aloud != nil && !r.aloud.instead:
		return r.answerAloud(ctx)
	}
	return r.answer.Converse(ctx, "")
}

// asksAgain reports whether the turn asks again for what the user was asked to allow.
func (r *reply) asksAgain() bool {
	return r.order.Answer == prompts.ConsentAsk || r.order.Answer == prompts.ConsentVoice
}

// fixed returns the words of the order's answer, which are no model's.
func (r *reply) fixed() string {
	asked := r.order.Consent
	return r.prompts.Phrase(r.order.Answer, string(r.order.Lang), "action", asked.Action, "people", text.List(asked.By, r.order.Lang))
}

func (r *reply) tell(ctx context.Context, n *announcement) error {
	if n.Begin != nil {
		if err := n.Begin(ctx); err != nil {
			r.log.Warn("an announcement is not told", "err", err)
			return nil
		}
	}
	if n.sound != nil {
		if err := r.answer.PlaySound(ctx, n.Title, n.sound); err != nil {
			return err
		}
	}
	if n.Instruction != "" {
		err := r.answer.Converse(ctx, n.Instruction)
		if err == nil || ctx.Err() != nil || !r.answer.Silent() {
			return err
		}
		r.log.Warn("the model did not word a notice", "err", err)
	}
	if n.Text == "" {
		return nil
	}
	return r.answer.Say(ctx, n.Text)
}

// run does the whole turn and fills out. It always completes the start/stop
// pair, unless the floor was taken away.
func (r *reply) run(ctx context.Context) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(turn.ErrDone)
	thinkCtx, halt := context.WithCancelCause(ctx)
	defer halt(turn.ErrDone)
	var wg sync.WaitGroup
	var synthErr, broken error
	wg.Go(func() {
		synthErr = speak.Protect(r.log, "synthesize", func() error { return r.speaker.Synthesize(ctx) })
		if synthErr != nil {
			halt(synthErr) // what was synthesised is still played
		}
	})
	wg.Go(func() {
		playErr := speak.Protect(r.log, "play", func() error { return r.speaker.Play(ctx) })
		if playErr != nil && ctx.Err() == nil {
			broken = playErr
			stop(playErr)
		}
	})
	thinkErr := speak.Protect(r.log, "think", func() error { return r.respond(thinkCtx) })
	if thinkErr != nil && thinkCtx.Err() == nil {
		r.answer.SayFailure(thinkCtx, thinkErr)
	}
	r.speaker.Close()
	wg.Wait()
	_ = r.player.AwaitOpen(ctx) // finish sees how ctx ended
	r.finish(ctx, thinkErr, synthErr, broken)
}

// finish closes the pair and works out what the turn leaves behind. broken is
// why the play-out failed by itself.
func (r *reply) finish(ctx context.Context, thinkErr, synthErr, broken error) {
	now := time.Now()
	r.out.cause = r.order.Cause
	if r.out.cause == nil {
		r.out.cause = turn.ErrDone
	}
	r.out.err = r.order.Err
	switch {
	case broken != nil:
		r.out.cause, r.out.err = turn.ErrFailed, broken
	case ctx.Err() != nil:
		r.out.cause, r.out.cut = context.Cause(ctx), true
	case synthErr != nil:
		r.out.cause, r.out.err, r.out.cut = turn.ErrFailed, synthErr, true
		if thinkErr != nil && !errors.Is(thinkErr, speak.ErrVoice) {
			r.out.err = errors.Join(thinkErr, synthErr)
		}
	case thinkErr != nil:
		r.out.cause, r.out.err = turn.ErrFailed, thinkErr
	case r.order.Err != nil:
		r.out.cause = turn.ErrFailed
	}
	if r.out.cut || errors.Is(r.out.cause, turn.ErrFailed) {
		r.out.messages = r.answer.HeardMessages(now)
	} else {
		r.out.messages = r.answer.Messages()
	}
	r.heardAloud(now)
	r.out.played, r.out.beside = r.player.Played(now), r.player.HeardBeside(now)
	r.out.asked = r.answer.Asked(r.out.messages)
	r.out.hangUp = (r.answer.HangUp() || r.order.HangUp) && !r.out.cut
	for _, m := range r.out.messages {
		if m.Role == providers.RoleAssistant {
			r.out.heard += len([]rune(m.Content))
		}
	}
	if errors.Is(r.out.cause, turn.ErrResumed) {
		r.out.messages = nil
	}
}
