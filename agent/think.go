package agent

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"xiaozhi/agent/speak"
	"xiaozhi/agent/turn"

	"xiaozhi/internal/idle"
	segments "xiaozhi/internal/text/sentence"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// step is one model call and what came of it.
type step struct {
	index int
	text  strings.Builder
	split segments.Splitter
	said  bool // something of it goes to the ear
	calls []*callRecord
}

// think produces the answer: model steps with tools between them.
func (t *reply) think(ctx context.Context) error {
	switch {
	case t.order.Phrase != "":
		return t.sayPhrase(ctx, 0, t.order.Phrase)
	case t.order.Answer != "":
		return t.sayOwn(ctx, t.o.Prompts.Phrase(t.order.Answer, t.order.lang()))
	case t.order.notice != nil:
		return t.tell(ctx, *t.order.notice)
	case !t.order.Told && isOneOf(t.order.Words, t.o.ExitWords):
		t.goodbye()
		return t.sayOwn(ctx, t.o.Prompts.Phrase(prompts.Goodbye, t.order.lang()))
	}
	if t.order.Words == "" || t.order.Told {
		return nil // nothing but the start/stop pair
	}
	return t.converse(ctx, "")
}

// goodbye makes the reply the last of the conversation, which voice does not
// cut any more (voice.md, behaviour 33); the button does.
func (t *reply) goodbye() {
	t.hangUp = true
	t.post(turn.Firmed{Turn: t.id})
}

// tell says what waited to be told.
func (t *reply) tell(ctx context.Context, n notice) error {
	if n.song != nil {
		return t.saySound(ctx, "♪ "+n.song.title, n.song.sounds())
	}
	if n.ring {
		if err := t.saySound(ctx, "🔔", chime()); err != nil {
			return err
		}
	}
	if n.ask != "" {
		err := t.converse(ctx, n.ask)
		if err == nil || ctx.Err() != nil || !t.silent() {
			return err
		}
		t.log.Warn("the model did not word a notice", "err", err)
	}
	return t.sayOwn(ctx, n.say)
}

// converse asks the model, with tools between its steps. note is something that
// the user did not say and the model should know; "" for nothing.
func (t *reply) converse(ctx context.Context, note string) error {
	system, err := t.system()
	if err != nil {
		return err
	}
	ctx, giveUp := context.WithCancelCause(mcp.WithInfo(ctx, mcp.Info{DeviceID: t.session.DeviceID, Language: t.order.lang(), Zone: t.o.Zone}))
	defer t.calling.Wait()
	defer giveUp(turn.ErrDone) // calls whose results nobody waits for, because the model broke
	again, err := t.callAllowed(ctx)
	if err != nil {
		return err
	}
	if !again {
		return t.question(ctx)
	}
	fast := t.o.FastPath != nil && note == "" && t.order.allow == nil
	for n := 0; ; n++ {
		st := &step{index: len(t.steps)}
		req := t.request(system, note, n >= t.o.MaxSteps)
		t.steps = append(t.steps, st)
		if fast {
			fast, err = t.answerFast(ctx, st, req)
		}
		if !fast && err == nil {
			err = t.generate(ctx, st, req)
		}
		if err == nil {
			err = t.sayAll(ctx, st, st.split.Flush())
		}
		if err != nil {
			return err
		}
		again, err := t.settle(ctx, st)
		if err == nil && !again && len(st.calls) == 0 && t.silent() {
			err = &modelError{errEmpty}
		}
		if err != nil {
			return err
		}
		if !again {
			return t.question(ctx)
		}
	}
}

// callAllowed makes the call that the user has just allowed, and reports
// whether the model is to be asked.
func (t *reply) callAllowed(ctx context.Context) (bool, error) {
	if t.order.allow == nil {
		return true, nil
	}
	st := &step{index: len(t.steps)}
	t.steps = append(t.steps, st)
	if err := t.startCall(ctx, st, *t.order.allow); err != nil {
		return false, err
	}
	return t.settle(ctx, st)
}

// errEmpty says that the model has ended without a word.
var errEmpty = errors.New("the answer is empty")

// silent reports whether nothing was answered in any step.
func (t *reply) silent() bool {
	for _, s := range t.steps {
		if strings.TrimSpace(s.text.String()) != "" {
			return false
		}
	}
	return true
}

// system is the turn's system prompt.
func (t *reply) system() (string, error) {
	return t.o.Prompts.Render(t.role, t.session.Language, prompts.Data{
		AssistantName: t.o.Name,
		DeviceName:    t.session.Name,
		Language:      t.order.lang(),
		Now:           time.Now().In(t.o.Zone),
	})
}

// request is the next model call.
func (t *reply) request(system, note string, forced bool) providers.LLMRequest {
	messages := []providers.Message{{Role: providers.RoleSystem, Content: system}}
	messages = append(messages, t.history...)
	if note != "" {
		messages = append(messages, providers.Message{Role: providers.RoleUser, Content: note})
	}
	messages = append(messages, t.messages()...)
	return providers.LLMRequest{
		Messages: messages, Tools: toolSpecs(t.tools), NoTools: forced, Language: t.order.lang(),
	}
}

// toolSpecs is what the model sees of the tools.
func toolSpecs(tools *router.Router) []providers.ToolSpec {
	var out []providers.ToolSpec
	for _, o := range tools.Offers() {
		out = append(out, specOf(o))
	}
	return out
}

// deviceSpecs are those of them that the device itself runs.
func deviceSpecs(tools *router.Router) []providers.ToolSpec {
	var out []providers.ToolSpec
	for _, o := range tools.Offers() {
		if o.OfDevice() {
			out = append(out, specOf(o))
		}
	}
	return out
}

func specOf(o router.Offer) providers.ToolSpec {
	return providers.ToolSpec{Name: o.LLMName, Description: o.Tool.Description, Parameters: o.Tool.Schema}
}

// answerFast lets the fast path answer, and reports whether it did.
func (t *reply) answerFast(ctx context.Context, st *step, req providers.LLMRequest) (bool, error) {
	d, ok := t.o.FastPath.Answer(req)
	if !ok {
		return false, nil
	}
	t.times.ModelAsked()
	return true, t.delta(ctx, st, d, req.NoTools)
}

// generate runs one model call.
func (t *reply) generate(ctx context.Context, st *step, req providers.LLMRequest) error {
	stepCtx, limit := idle.WithTimeout(ctx, t.o.StepTimeout)
	defer limit.Close()
	t.times.ModelAsked()
	answered := t.waitAloud(ctx)
	defer answered()
	for d, err := range t.o.LLM.Generate(stepCtx, req) {
		if err != nil {
			answered()
			if ctx.Err() == nil && stepCtx.Err() != nil {
				err = context.Cause(stepCtx)
			}
			return &modelError{err}
		}
		limit.Pause() // a long answer waits for the speaker
		if err := t.delta(ctx, st, d, req.NoTools); err != nil {
			return err
		}
		if st.said {
			answered()
		}
		limit.Resume()
	}
	if stepCtx.Err() != nil {
		return &modelError{context.Cause(stepCtx)}
	}
	return nil
}

// modelError marks a failure of the language model.
type modelError struct{ err error }

func (e *modelError) Error() string { return "language model: " + e.err.Error() }
func (e *modelError) Unwrap() error { return e.err }

// delta takes in a piece of the model's answer.
func (t *reply) delta(ctx context.Context, st *step, d providers.Delta, noTools bool) error {
	t.times.Token(d.Provider)
	if d.Thought != "" {
		t.player.Send(wire.Message{Kind: wire.MessageThought, Text: d.Thought})
	}
	if d.Fallback && t.order.notice != nil {
		return nil // it is no model that could word anything
	}
	if d.Text != "" {
		st.text.WriteString(d.Text)
		if err := t.sayAll(ctx, st, st.split.Feed(d.Text)); err != nil {
			return err
		}
	}
	if noTools {
		return nil // the forced answer: calls that come all the same are not made
	}
	for _, call := range d.ToolCalls {
		if err := t.startCall(ctx, st, call); err != nil {
			return err
		}
	}
	return nil
}

// sayAll gives segments of the model's text to the speaker.
func (t *reply) sayAll(ctx context.Context, st *step, segments []string) error {
	for _, seg := range segments {
		t.player.Send(wire.Message{Kind: wire.MessageChunk, Text: seg})
		s := speak.NewSegment(seg, t.order.Lang, st.index)
		if !t.faced {
			t.faced = true
			s.Face()
		} else {
			s.Emotion, s.Emoji = "", ""
		}
		st.said = st.said || s.Speech != ""
		if err := t.speaker.Say(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// sayOwn says a sentence of our own as part of the answer.
func (t *reply) sayOwn(ctx context.Context, text string) error {
	if len(t.steps) == 0 {
		t.steps = append(t.steps, &step{})
	}
	st := t.steps[len(t.steps)-1]
	own := segments.Splitter{}
	st.text.WriteString(joinText(st.text.String(), text)[len(st.text.String()):])
	return t.sayAll(ctx, st, append(own.Feed(text), own.Flush()...))
}

// sayPhrase says a phrase that is no part of the answer.
func (t *reply) sayPhrase(ctx context.Context, stepIndex int, id string) error {
	words := t.o.Prompts.Phrase(id, t.order.lang())
	return t.speaker.Say(ctx, speak.NewPhrase(id, words, t.order.Lang, stepIndex))
}

// saySound plays a sound that is no part of the answer, showing display.
func (t *reply) saySound(ctx context.Context, display string, sound iter.Seq2[providers.Sound, error]) error {
	s := speak.Segment{Fallback: prompts.FailInternal, Sound: sound}
	s.Display, s.Language = display, t.order.Lang
	return t.speaker.Say(ctx, s)
}

// sayFailure makes a failure of the turn heard.
func (t *reply) sayFailure(ctx context.Context, err error) {
	id := prompts.FailInternal
	if _, ok := errors.AsType[*modelError](err); ok {
		id = prompts.FailLLM
		if errors.Is(err, context.DeadlineExceeded) {
			id = prompts.FailTimeout
		}
	}
	if err := t.sayPhrase(ctx, max(0, len(t.steps)-1), id); err != nil {
		t.log.Debug("failure not heard", "err", err)
	}
}

// clip cuts text for a log line, on a rune boundary.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
