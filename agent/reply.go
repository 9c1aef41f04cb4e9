package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent/speak"
	"xiaozhi/agent/turn"

	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
)

// order is a request with what its numbers stand for.
type order struct {
	turn.Request
	notice *notice             // of Announcement; nil: the turn has a user's utterance
	allow  *providers.ToolCall // the call that Allow is about: it is made before anything else
}

// lang is the language of the turn.
func (o *order) lang() string { return string(o.Lang) }

// allowed is a call that the user was asked to allow, by the number of its question.
type allowed struct {
	id   uint64
	call providers.ToolCall
}

// replyEnded says that the goroutines of a turn have been joined.
type replyEnded struct{ reply *reply }

// outcome is what a turn leaves behind.
type outcome struct {
	messages []providers.Message // for the history
	hangUp   bool
	cause    error               // how it ended
	err      error               // what failed, for the log; nil if nothing did
	cut      bool                // the user did not hear all of it
	heard    int                 // characters of the answer that were heard
	played   time.Duration       // how much of its sound the device has played
	asides   string              // what was heard beside the answer
	asked    *providers.ToolCall // what the user was asked to allow; nil: nothing
}

// reply is one turn at work: run thinks, and joins the goroutines of the speaker.
// The conversation reads out after run has returned.
type reply struct {
	id      uint64
	order   order
	o       *Options
	tools   *router.Router
	session wire.Session
	log     *slog.Logger
	player  *speak.Player
	speaker *speak.Speaker
	times   *timeline.Turn
	history []providers.Message // a snapshot
	version uint64              // of the history that it knows
	cancel  context.CancelCauseFunc
	late    func(router.Prepared, mcp.ActionResponse) // the true outcome of a control call; may be called after run
	mail    *mailbox                                  // of the device: jobs begin there
	post    func(any)                                 // to the conversation
	allow   chan struct{}                             // size 1: the leave to run a tool
	voiced  *atomic.Bool                              // of the conversation: somebody is speaking
	calls   *budget                                   // of the device's calls
	role    string                                    // the name of the system prompt

	steps     []*step
	faced     bool                // the reply's face was looked for
	hangUp    bool                // the conversation ends after the reply
	asked     *providers.ToolCall // what the user is being asked to allow
	action    string              // asked, as words
	asking    string              // how the question begins: so much of it has to be heard
	allowed   bool                // the call that the user has allowed was made
	calling   sync.WaitGroup      // goroutines that wait for tools
	made      int                 // calls so far
	hums      int                 // fillers so far
	excused   bool                // it was said that the model is slow
	out       outcome
	forgotten bool // the user asked to forget: nothing of it is kept; of the conversation
	adopted   bool // it began as a speculation and is the answer; of the conversation
	pauses    int  // false interruptions; of the conversation
}

// newReply makes the turn of an order. It may be seen and heard at once, unless
// it is a speculation.
func newReply(c *Conversation, id uint64, o order, cancel context.CancelCauseFunc) *reply {
	r := &reply{
		id: id, order: o, o: c.o, tools: c.tools, session: c.session, log: c.log.With("turn", id),
		times: timeline.New(o.Times), history: c.dev.history.snapshot(), version: c.dev.history.version, cancel: cancel,
		role: cmp.Or(c.dev.role, c.o.Prompt), mail: c.dev.mail, post: c.post, calls: &c.dev.calls,
		voiced: &c.voiced, allow: make(chan struct{}, 1),
	}
	r.player = speak.NewPlayer(c.out, id, c.o.Reply, c.o.Lead)
	r.player.Follow(speak.Taps{FarEnd: c.mic.o.FarEnd, SelfEcho: c.mic.o.SelfEcho}, &c.o.Devices.stagger, c.pacer)
	c.pacer = r.player.Pacer()
	if o.Speculative {
		r.player.Hold()
	}
	ended := c.ended
	r.late = func(p router.Prepared, response mcp.ActionResponse) {
		l := lateCall{prepared: p, response: response}
		select {
		case <-ended:
			l.gone = true
		default:
		}
		r.mail.post(l)
	}
	r.speaker = speak.NewSpeaker(&c.voice, r.log, r.player, r.times, c.session.Voice, func() { c.post(turn.Ready{Turn: id}) })
	return r
}

// acquire waits for the leave to run a tool. With start, tts start goes first:
// the tool holds the device's main task, and a later one would wait behind it.
func (r *reply) acquire(ctx context.Context, start bool) error {
	if start {
		r.player.Announce()
	}
	r.post(turn.ToolWanted{Turn: r.id, Start: start})
	select {
	case <-r.allow:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run does the whole turn and fills out. It always completes the start/stop
// pair, unless the floor was taken away.
func (t *reply) run(ctx context.Context) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(turn.ErrDone)
	thinkCtx, halt := context.WithCancelCause(ctx)
	defer halt(turn.ErrDone)
	var wg sync.WaitGroup
	var synthErr, broken error
	wg.Go(func() {
		synthErr = protect(t.log, "synthesize", func() error { return t.speaker.Synthesize(ctx) })
		if synthErr != nil {
			halt(synthErr) // what was synthesised is still played
		}
	})
	wg.Go(func() {
		playErr := protect(t.log, "play", func() error { return t.speaker.Play(ctx) })
		if playErr != nil && ctx.Err() == nil {
			broken = playErr
			stop(playErr)
		}
	})
	thinkErr := protect(t.log, "think", func() error { return t.think(thinkCtx) })
	if thinkErr != nil && thinkCtx.Err() == nil {
		t.sayFailure(thinkCtx, thinkErr)
	}
	t.speaker.Close()
	wg.Wait()
	_ = t.player.AwaitOpen(ctx) // finish sees how ctx ended
	t.finish(ctx, thinkErr, synthErr, broken)
}

// protect turns a panic in f into an error, so that it costs no more than what f does.
func protect(log *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "where", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: panic in %s: %v", turn.ErrFailed, what, p)
		}
	}()
	return f()
}

// finish closes the pair and works out what the turn leaves behind. broken is
// why the play-out failed by itself.
func (t *reply) finish(ctx context.Context, thinkErr, synthErr, broken error) {
	now := time.Now()
	t.out.cause = t.order.Cause
	if t.out.cause == nil {
		t.out.cause = turn.ErrDone
	}
	t.out.err = t.order.Err
	switch {
	case broken != nil:
		t.out.cause, t.out.err = turn.ErrFailed, broken
	case ctx.Err() != nil:
		t.out.cause, t.out.cut = context.Cause(ctx), true
	case synthErr != nil:
		t.out.cause, t.out.err, t.out.cut = turn.ErrFailed, synthErr, true
		if thinkErr != nil && !errors.Is(thinkErr, speak.ErrVoice) {
			t.out.err = errors.Join(thinkErr, synthErr)
		}
	case thinkErr != nil:
		t.out.cause, t.out.err = turn.ErrFailed, thinkErr
	case t.order.Err != nil:
		t.out.cause = turn.ErrFailed
	}
	if t.out.cut || errors.Is(t.out.cause, turn.ErrFailed) {
		t.out.messages = t.heardMessages(now)
	} else {
		t.out.messages = t.messages()
	}
	t.out.played, t.out.asides = t.player.Played(now), t.player.HeardBeside(now)
	if t.asked != nil && t.questionHeard() {
		t.out.asked = t.asked
	}
	t.out.hangUp = (t.hangUp || t.order.HangUp) && !t.out.cut
	for _, m := range t.out.messages {
		if m.Role == providers.RoleAssistant {
			t.out.heard += len([]rune(m.Content))
		}
	}
	if errors.Is(t.out.cause, turn.ErrResumed) {
		t.out.messages = nil
	}
}

// messages is the turn so far, as if all of it was heard.
func (t *reply) messages() []providers.Message {
	texts := make([]string, len(t.steps))
	for i, s := range t.steps {
		texts[i] = s.text.String()
	}
	return t.assemble(texts)
}

// heardMessages is the turn with only those words that were played (voice.md,
// behaviour 32). A cut is marked by an ellipsis.
func (t *reply) heardMessages(now time.Time) []providers.Message {
	texts, partial := t.player.Heard(now, len(t.steps))
	if partial {
		for i := len(texts) - 1; i >= 0; i-- {
			if texts[i] != "" {
				texts[i] += "…"
				break
			}
		}
	}
	return t.assemble(texts)
}

// assemble puts the user's message, the steps and their results in order. Every
// call gets exactly one result.
func (t *reply) assemble(texts []string) []providers.Message {
	var out []providers.Message
	if t.order.Words != "" {
		out = append(out, providers.Message{Role: providers.RoleUser, Content: t.order.Words})
	}
	for i, s := range t.steps {
		m := providers.Message{Role: providers.RoleAssistant}
		if i < len(texts) {
			m.Content = strings.TrimSpace(texts[i])
		}
		var results []providers.Message
		for _, c := range s.calls {
			m.ToolCalls = append(m.ToolCalls, c.call)
			results = append(results, providers.Message{Role: providers.RoleTool, ToolCallID: c.call.ID, Content: c.result()})
		}
		if m.Content == "" && len(m.ToolCalls) == 0 {
			continue
		}
		out = append(append(out, m), results...)
	}
	return out
}
