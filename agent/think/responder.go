package think

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"xiaozhi/agent/speak"
	"xiaozhi/internal/idle"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/sentence"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// FastPath answers the plainest requests without a model.
type FastPath interface {
	// Answer gives the one delta that answers req, or false when it does not know.
	Answer(req providers.LLMRequest) (providers.Delta, bool)
}

// Outlet takes an answer to the device.
type Outlet struct {
	Player  *speak.Player
	Speaker *speak.Speaker
	Times   *timeline.Turn
}

// Gate asks the conversation for leave. Its methods end with their context, which
// ends when the turn is cut or undone.
type Gate interface {
	// Tool waits until a tool may run. start: tts start has to go first.
	Tool(ctx context.Context, start bool) error
	// AwaitsModel says that the turn waits for the model, until over is called.
	AwaitsModel() (over func())
	// AwaitsTool says that the turn waits for a tool, until over is called.
	AwaitsTool() (over func())
	// Advanced says that a tool that is waited for has done so much of its work: 0 to 1.
	Advanced(done float64)
	// Firm says that voice does not interrupt the turn any more.
	Firm()
}

// Responder answers one turn. It belongs to one goroutine, and joins what it has
// started before Converse returns.
type Responder struct {
	o     *Options
	turn  Turn
	out   Outlet
	gate  Gate
	tools Tools
	log   *slog.Logger

	steps    []*step
	faced    bool // the reply's face was looked for
	hangUp   bool // the conversation ends after the reply
	question question
	calling  sync.WaitGroup // goroutines that wait for tools
	made     int            // calls so far
	quoted   bool           // the model was given texts of strangers
}

// New makes the responder of a turn.
func New(o *Options, t Turn, out Outlet, gate Gate, tools Tools, log *slog.Logger) *Responder {
	return &Responder{o: o, turn: t, out: out, gate: gate, tools: tools, log: log}
}

// step is one model call and what came of it.
type step struct {
	index int
	text  strings.Builder
	split sentence.Splitter
	said  bool // something of it goes to the ear
	calls []*toolCall
	echo  providers.Echo // the last that the model gave
}

// Goodbye makes the reply the last of the conversation, which voice does not cut
// any more (docs/behaviours.md 33); the button does.
func (r *Responder) Goodbye() {
	r.hangUp = true
	r.gate.Firm()
}

// HangUp reports whether the conversation ends after the reply.
func (r *Responder) HangUp() bool { return r.hangUp }

// Converse asks the model, with tools between its steps. note is something that
// the user did not say and the model should know; "" for nothing.
func (r *Responder) Converse(ctx context.Context, note string) error {
	system, err := Instructions(r.o, r.turn)
	if err != nil {
		return err
	}
	told := note != ""
	ctx = r.withInfo(ctx)
	var notes Notes
	if r.turn.Notes != nil {
		notes = r.turn.Notes(ctx, r.turn.Words)
	}
	system, note = withNotes(system, note, r.who(), notes)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer r.calling.Wait()
	defer giveUp(nil) // calls whose results are not wanted, because the model broke
	again, err := r.callAllowed(ctx)
	if err != nil {
		return err
	}
	if !again {
		return r.ask(ctx)
	}
	fast := r.o.FastPath != nil && !told && r.turn.Allow == nil && r.made == 0
	for n := 0; ; n++ {
		st := &step{index: len(r.steps), split: r.splitter()}
		req := r.request(system, note, n >= r.o.MaxSteps)
		r.steps = append(r.steps, st)
		if fast {
			fast, err = r.answerFast(ctx, st, req)
		}
		if !fast && err == nil {
			err = r.generate(ctx, st, req)
		}
		if err == nil {
			err = r.sayAll(ctx, st, st.split.Flush())
		}
		if err != nil {
			return err
		}
		again, err := r.finish(ctx, st)
		if err == nil && !again && len(st.calls) == 0 && r.Silent() {
			err = fmt.Errorf("%w: the answer is empty", errModel)
		}
		if err != nil {
			return err
		}
		if !again {
			return r.ask(ctx)
		}
	}
}

// who says who is speaking, as a model is told; "": nobody is, or voices are not told apart.
func (r *Responder) who() string {
	s, lang := r.turn.Speaker, text.Lang(r.turn.Session.Language)
	switch {
	case !s.On || r.turn.Words == "":
		return ""
	case s.Name == "":
		return message.In(lang, "agent/speaker-unknown")
	case s.Before:
		return message.In(lang, "agent/speaker-before", s.Name)
	case s.Certain:
		return message.In(lang, "agent/speaker-certain", s.Name)
	}
	return message.In(lang, "agent/speaker-fairly", s.Name)
}

// withInfo has what is called under a context know of the turn.
func (r *Responder) withInfo(ctx context.Context) context.Context {
	return mcp.WithInfo(ctx, mcp.Info{DeviceID: r.turn.Session.DeviceID, Agent: r.turn.Agent, Language: r.lang(), Zone: r.o.Zone, Speaker: r.turn.Speaker})
}

// Silent reports whether nothing was answered in any step.
func (r *Responder) Silent() bool {
	return !slices.ContainsFunc(r.steps, func(s *step) bool { return strings.TrimSpace(s.text.String()) != "" })
}

// Words are the user's, as far as they are known. They are for who waits for the responder.
func (r *Responder) Words() string { return r.turn.Words }

// request makes the next model call.
func (r *Responder) request(system, note string, forced bool) providers.LLMRequest {
	req := requestOf(r.o, &r.turn, system, note, r.assemble(r.texts(), true))
	req.Tools, req.NoTools, req.Certain = Specs(r.tools.Router, false), forced, r.out.Player.Certain()
	return req
}

// Specs returns what a model sees of the tools: of all, or of those that the
// device itself runs.
func Specs(tools *router.Router, ofDevice bool) (out []providers.ToolSpec) {
	for _, o := range tools.Offers() {
		if !ofDevice || o.Tool.OfDevice() {
			out = append(out, providers.ToolSpec{Name: o.LLMName, Description: o.Tool.Description, Parameters: o.Tool.Schema})
		}
	}
	return out
}

// answerFast lets the fast path answer, and reports whether it did.
func (r *Responder) answerFast(ctx context.Context, st *step, req providers.LLMRequest) (bool, error) {
	d, ok := r.o.FastPath.Answer(req)
	if !ok {
		return false, nil
	}
	r.out.Times.ModelAsked()
	return true, r.delta(ctx, st, d, req.NoTools)
}

// generate runs one model call.
func (r *Responder) generate(ctx context.Context, st *step, req providers.LLMRequest) error {
	if r.o.LLM == nil {
		return fmt.Errorf("%w: there is none", errModel)
	}
	stepCtx, limit := idle.WithTimeout(timeline.WithAttempts(ctx, r.out.Times.Of(r.out.Times.ModelAsked())), r.o.StepTimeout)
	defer limit.Close()
	answered := sync.OnceFunc(r.gate.AwaitsModel())
	defer answered()
	for d, err := range r.o.LLM.Generate(stepCtx, req) {
		if err != nil {
			if ctx.Err() == nil && stepCtx.Err() != nil {
				err = context.Cause(stepCtx)
			}
			return fmt.Errorf("%w: %w", errModel, err)
		}
		limit.Pause() // a long answer waits for the speaker
		if err := r.delta(ctx, st, d, req.NoTools); err != nil {
			return err
		}
		if st.said {
			answered()
		}
		limit.Resume()
	}
	if stepCtx.Err() != nil {
		return fmt.Errorf("%w: %w", errModel, context.Cause(stepCtx))
	}
	return nil
}

// errModel marks a failure of the language model.
var errModel = errors.New("language model")

// delta takes in a piece of the model's answer.
func (r *Responder) delta(ctx context.Context, st *step, d providers.Delta, noTools bool) error {
	r.out.Times.Token(d.Provider)
	r.out.Times.Spent(timeline.Tokens{Prompt: d.Usage.Prompt, Completion: d.Usage.Completion})
	if d.Thought != "" {
		r.out.Player.Send(wire.Message{Kind: wire.MessageThought, Text: d.Thought})
	}
	if d.Echo != (providers.Echo{}) {
		st.echo = d.Echo
	}
	if d.Fallback && r.turn.Words == "" {
		return nil // it is no model that could word anything
	}
	if d.Text != "" {
		if strings.TrimSpace(d.Text) != "" {
			r.out.Speaker.Announce()
		}
		st.text.WriteString(d.Text)
		if err := r.sayAll(ctx, st, st.split.Feed(d.Text)); err != nil {
			return err
		}
	}
	if noTools {
		return nil // the forced answer: calls that come all the same are not made
	}
	for _, call := range d.ToolCalls {
		if err := r.startCall(ctx, st, call); err != nil {
			return err
		}
	}
	return nil
}

// sayAll gives pieces of the model's text to the speaker.
func (r *Responder) sayAll(ctx context.Context, st *step, pieces []string) error {
	for _, piece := range pieces {
		r.out.Player.Send(wire.Message{Kind: wire.MessageChunk, Text: piece})
		s := speak.NewSegment(piece, r.turn.Lang, st.index)
		if !r.faced {
			r.faced = true
			s.Face()
		} else {
			s.Emotion, s.Emoji = "", ""
		}
		st.said = st.said || s.Speech != ""
		if err := r.out.Speaker.Say(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Say says words of our own as part of the answer.
func (r *Responder) Say(ctx context.Context, words string) error {
	if len(r.steps) == 0 {
		r.steps = append(r.steps, &step{split: r.splitter()})
	}
	st := r.steps[len(r.steps)-1]
	own := r.splitter()
	st.text.WriteString(text.Join(st.text.String(), words)[len(st.text.String()):])
	return r.sayAll(ctx, st, append(own.Feed(words), own.Flush()...))
}

// SayPhrase says a phrase that is no part of the answer.
func (r *Responder) SayPhrase(ctx context.Context, id string) error {
	words := r.o.Prompts.Phrase(id, r.lang())
	return r.out.Speaker.Say(ctx, speak.NewPhrase(id, words, r.turn.Lang))
}

// SayInstead says words in the place of a phrase, whose embedded sound is played if
// they cannot be synthesised. They are no part of the answer.
func (r *Responder) SayInstead(ctx context.Context, id, words string) error {
	return r.out.Speaker.Say(ctx, speak.NewPhrase(id, words, r.turn.Lang))
}

// PlayPhrase plays the embedded sound of a phrase. It asks no engine.
func (r *Responder) PlayPhrase(ctx context.Context, id string) error {
	return r.out.Speaker.Say(ctx, speak.NewRecorded(id, r.o.Prompts.Phrase(id, r.lang()), r.turn.Lang))
}

// PlaySound plays a sound that is no part of the answer, showing display.
func (r *Responder) PlaySound(ctx context.Context, display string, sound iter.Seq2[providers.Sound, error]) error {
	s := speak.Segment{Fallback: prompts.FailInternal, Sound: sound}
	s.Display, s.Language = display, r.turn.Lang
	return r.out.Speaker.Say(ctx, s)
}

// SayFailure makes a failure of the turn heard.
func (r *Responder) SayFailure(ctx context.Context, err error) {
	id := prompts.FailInternal
	if errors.Is(err, errModel) {
		id = prompts.FailLLM
		if errors.Is(err, context.DeadlineExceeded) {
			id = prompts.FailTimeout
		}
	}
	if err := r.SayPhrase(ctx, id); err != nil {
		r.log.Debug("failure not heard", "err", err)
	}
}

// splitter returns one that cuts text in the language of the turn.
func (r *Responder) splitter() sentence.Splitter {
	return sentence.Splitter{Lang: r.turn.Lang, Words: r.o.Prompts.Words(r.turn.Lang)}
}

func (r *Responder) lang() string { return string(r.turn.Lang) }
