package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
)

// Why a turn or a conversation ended: read with context.Cause, logged as cause.
var (
	ErrDone     = errors.New("done")
	ErrBargeIn  = errors.New("barge-in")
	ErrAborted  = errors.New("aborted")
	ErrResumed  = errors.New("resumed") // the user went on speaking: the turn is undone
	ErrReplaced = errors.New("replaced by a newer turn")
	ErrPaused   = errors.New("paused") // only music: it goes on
	ErrNoSpeech = errors.New("no speech")
	ErrFailed   = errors.New("failed")
	ErrGoodbye  = errors.New("goodbye")
	ErrIdle     = errors.New("idle")
	ErrShutdown = errors.New("server is stopping") // only of jobs: a conversation ends with the cause of its ctx
)

// order is what a turn is asked to do.
type order struct {
	text     string              // the user's words: think about them; "" for none
	stt      string              // shown as the user's words; "" for none
	phrase   string              // say this phrase instead of thinking; "" for none
	reply    string              // say this as the answer instead of thinking; "" for none
	language string              // of the turn: "zh" or "en"
	before   string              // the device's language until this turn, which counts again if the turn is undone
	hangUp   bool                // the conversation ends after it
	failed   error               // why the phrase is said, when something failed before the turn
	cause    error               // how the turn ends if all goes well; nil: ErrDone
	notice   *notice             // tell this; nil: the turn has a user's utterance
	consent  *providers.ToolCall // the user has just allowed it: it is run before anything else
	asked    *consent            // the question that was open when the user said text; nil: none
	told     bool                // text is the answer to somebody outside: nothing is thought about it
	trial    bool                // begin before it is known whether the user has finished
	timing   *timing
}

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

// turn is one utterance and its answer. run thinks, and joins the two
// goroutines of the speaker; the conversation reads out after run has returned.
type turn struct {
	id      uint64
	order   order
	o       *Options
	tools   *router.Router
	session wire.Session
	log     *slog.Logger
	floor   *floor
	speaker *speaker
	timing  *timing
	history []providers.Message // a snapshot
	cancel  context.CancelCauseFunc
	late    func(router.Prepared, mcp.ActionResponse) // the true outcome of a control call; may be called after run
	mail    *mailbox                                  // of the device: jobs begin there
	report  func(any)                                 // to the conversation
	voiced  *atomic.Bool                              // of the conversation: somebody is speaking
	calls   *budget                                   // of the device's calls
	role    string                                    // the name of the system prompt

	steps   []*step
	faced   bool                // the reply's face was looked for
	hangUp  bool                // the conversation ends after the reply
	asked   *providers.ToolCall // what the user is being asked to allow
	action  string              // asked, as words
	asking  string              // how the question begins: so much of it has to be heard
	allowed bool                // the call that the user has allowed was made
	calling sync.WaitGroup      // goroutines that wait for tools
	made    int                 // calls so far
	hums    int                 // fillers so far
	excused bool                // it was said that the model is slow
	out     outcome

	// outside is nil in a turn. Where somebody outside acts on the conversation
	// (act.go), it is closed when the conversation is over.
	outside <-chan struct{}

	// Of the conversation.
	forgotten bool   // the user asked to forget: nothing of it is kept
	undo      order  // what is to be unsaid should the turn be undone
	version   uint64 // of the history that it knows
	alarms    int    // how often voice has paused it for nothing
}

// run does the whole turn and fills out. It always completes the start/stop
// pair, unless the floor was taken away.
func (t *turn) run(ctx context.Context) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(ErrDone)
	thinkCtx, halt := context.WithCancelCause(ctx)
	defer halt(ErrDone)
	var wg sync.WaitGroup
	var synthErr, broken error
	wg.Go(func() {
		synthErr = protect(t.log, "synthesize", func() error { return t.speaker.synthesize(ctx) })
		if synthErr != nil {
			halt(synthErr) // what was synthesised is still played
		}
	})
	wg.Go(func() {
		playErr := protect(t.log, "play", func() error { return t.speaker.play(ctx) })
		if playErr != nil && ctx.Err() == nil {
			broken = playErr
			stop(playErr)
		}
	})
	thinkErr := protect(t.log, "think", func() error { return t.think(thinkCtx) })
	if thinkErr != nil && thinkCtx.Err() == nil {
		t.sayFailure(thinkCtx, thinkErr)
	}
	close(t.speaker.sentences)
	wg.Wait()
	_ = t.floor.await(ctx) // finish sees how ctx ended
	t.finish(ctx, thinkErr, synthErr, broken)
}

// protect turns a panic in f into an error, so that it costs no more than what f does.
func protect(log *slog.Logger, what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic", "where", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: panic in %s: %v", ErrFailed, what, p)
		}
	}()
	return f()
}

// finish closes the pair and works out what the turn leaves behind. broken is
// why the play-out failed by itself.
func (t *turn) finish(ctx context.Context, thinkErr, synthErr, broken error) {
	now := time.Now()
	t.out.cause = t.order.cause
	if t.out.cause == nil {
		t.out.cause = ErrDone
	}
	t.out.err = t.order.failed
	switch {
	case broken != nil:
		t.out.cause, t.out.err = ErrFailed, broken
	case ctx.Err() != nil:
		t.out.cause, t.out.cut = context.Cause(ctx), true
	case synthErr != nil:
		t.out.cause, t.out.err, t.out.cut = ErrFailed, synthErr, true
		if thinkErr != nil && !errors.Is(thinkErr, errTTS) {
			t.out.err = errors.Join(thinkErr, synthErr)
		}
	case thinkErr != nil:
		t.out.cause, t.out.err = ErrFailed, thinkErr
	case t.order.failed != nil:
		t.out.cause = ErrFailed
	}
	if t.out.cut || errors.Is(t.out.cause, ErrFailed) {
		t.out.messages = t.heardMessages(now)
	} else {
		t.out.messages = t.messages()
	}
	t.out.played, t.out.asides = t.floor.played(now), t.floor.asides(now)
	if t.asked != nil && t.questionHeard() {
		t.out.asked = t.asked
	}
	t.out.hangUp = (t.hangUp || t.order.hangUp) && !t.out.cut
	if ctx.Err() != nil && broken == nil {
		t.floor.cut() // the connection ends within the reply
	}
	t.floor.stop()
	for _, m := range t.out.messages {
		if m.Role == providers.RoleAssistant {
			t.out.heard += len([]rune(m.Content))
		}
	}
	if errors.Is(t.out.cause, ErrResumed) {
		t.out.messages = nil
	}
}

// messages is the turn so far, as if all of it was heard.
func (t *turn) messages() []providers.Message {
	texts := make([]string, len(t.steps))
	for i, s := range t.steps {
		texts[i] = s.text.String()
	}
	return t.assemble(texts)
}

// heardMessages is the turn with only those words that were played (voice.md,
// behaviour 32). A cut is marked by an ellipsis.
func (t *turn) heardMessages(now time.Time) []providers.Message {
	texts, partial := t.floor.heard(now, len(t.steps))
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
func (t *turn) assemble(texts []string) []providers.Message {
	var out []providers.Message
	if t.order.text != "" {
		out = append(out, providers.Message{Role: providers.RoleUser, Content: t.order.text})
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
