package think

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/timeline"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Results that stand in the history when no tool gave one.
const (
	resultAssumed   = "success"
	resultCancelled = "cancelled: the user interrupted"
)

// Tools are those of the device and of the conversation.
type Tools struct {
	Router *router.Router
	Budget *Budget
	// Late takes the true outcome of a control call, also after the turn; nil: controls are awaited.
	Late func(router.Prepared, mcp.ActionResponse)
	// Job begins what takes long. The error says why not, in that language. nil: jobs are awaited.
	Job func(ctx context.Context, p router.Prepared, lang text.Lang) error
	// Handle runs a handler of the conversation; ran is false if the turn was taken
	// away before.
	Handle func(ctx context.Context, name string, args any) (did Handled, ran bool, err error)
	// Knows reports whether there is a handler of that name.
	Knows func(name string) bool
}

// Handled describes what a handler wants of the turn.
type Handled struct {
	Result string    // the call's result in the history; "": that the handler was run
	Say    string    // spoken, if the step has not said anything yet
	Again  bool      // the model is asked once more
	HangUp bool      // the conversation ends after the reply
	Call   *mcp.Call // a call to make in its stead: its outcome is the result
	// Finish does what the handler must not wait for, such as to store something, and
	// says the rest; nil: all is done. It is called off the conversation's goroutine, and
	// must end with its context.
	Finish func(ctx context.Context) (Handled, error)
}

// Finished returns a handler's outcome when nothing of it is left to do. It waits for that.
func (h Handled) Finished(ctx context.Context) (Handled, error) {
	if h.Finish == nil {
		return h, nil
	}
	return h.Finish(ctx)
}

// toolCall is one tool call of a step.
type toolCall struct {
	call    providers.ToolCall
	control bool          // its success was assumed
	quotes  bool          // its result quotes texts of strangers
	done    chan struct{} // closed when outcome is set
	outcome mcp.Outcome
	asks    bool // the user is asked to allow it, when all else is said
}

// result is the call's text for the history, whatever state it is in.
func (c *toolCall) result() string {
	select {
	case <-c.done:
	default:
		return resultCancelled
	}
	if c.outcome.Handler != nil && c.outcome.Text == "" {
		return resultCancelled // the turn ended before its handler
	}
	return c.outcome.Text
}

// callAllowed makes the call that the user has just allowed, and reports whether
// the model is to be asked.
func (r *Responder) callAllowed(ctx context.Context) (bool, error) {
	if r.turn.Allow == nil {
		return true, nil
	}
	st := &step{index: len(r.steps)}
	r.steps = append(r.steps, st)
	if err := r.startCall(ctx, st, r.turn.Allow.Call); err != nil {
		return false, err
	}
	return r.finish(ctx, st)
}

// startCall begins a tool call. Controls are sent and taken to succeed, jobs go on
// by themselves; all others are awaited by finish.
func (r *Responder) startCall(ctx context.Context, st *step, call providers.ToolCall) error {
	if err := r.out.Player.AwaitOpen(ctx); err != nil {
		return err // a speculation does nothing that cannot be undone
	}
	call.ID = r.freshID(call.ID)
	c := &toolCall{call: call, done: make(chan struct{})}
	st.calls = append(st.calls, c)
	p, instead := r.prepare(c)
	if instead != nil {
		way := timeline.Refused
		if c.asks {
			way = timeline.Asks
		}
		r.out.Times.Call(timeline.Called{ID: call.ID, Name: cmp.Or(p.Offer.Tool.Name, call.Name), Way: way, Failed: instead.Failed})
		r.settle(c, *instead)
		return nil
	}
	noted := timeline.Called{ID: call.ID, Name: p.Offer.Tool.Name, Way: timeline.Awaited}
	remote := p.Offer.Tool.Source != "local"
	// Such a tool holds the device's main task: a later tts start would wait behind it.
	switch {
	case p.Offer.Job && r.tools.Job != nil:
		noted.Way = timeline.Job
	case remote && p.Offer.Kind == mcp.Control && r.tools.Late != nil:
		noted.Way = timeline.Assumed
	}
	r.out.Times.Call(noted)
	start := remote && (p.Offer.Kind == mcp.Control || strings.HasPrefix(p.Offer.Tool.Name, "self.camera."))
	if err := r.gate.Tool(ctx, start); err != nil {
		return err // undone in the meantime: the tool never runs
	}
	p.Info = mcp.InfoFrom(ctx)
	switch {
	case p.Offer.Job && r.tools.Job != nil:
		out := mcp.Outcome{Again: true, Text: message.In(r.turn.Lang, "agent/call-job")} // the model can say so, the result is told later
		if err := r.tools.Job(ctx, p, r.turn.Lang); err != nil {
			out = mcp.Failure(err.Error(), "", r.lang())
		}
		r.settle(c, out)
	case remote && p.Offer.Kind == mcp.Control && r.tools.Late != nil:
		out := mcp.Outcome{Text: resultAssumed}
		err := r.tools.Router.Go(p, func(response mcp.ActionResponse) { r.tools.Late(p, response) })
		if c.control = err == nil; !c.control {
			out = mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}.Outcome(r.lang())
		}
		r.settle(c, out)
	default:
		wait := r.tools.Router.Begin(heard(ctx, r.gate), p) // here, so that a device gets its calls in their order
		r.calling.Go(func() {
			response := wait()
			out := response.Outcome(r.lang())
			r.out.Times.Result(call.ID, out.Failed)
			r.settle(c, out)
		})
	}
	return nil
}

// heard returns a context whose tool tells the user how far it is, where it says that and while they wait.
func heard(ctx context.Context, gate Gate) context.Context {
	var mu sync.Mutex
	var last float64
	return mcp.WithProgress(ctx, func(p mcp.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if done := p.Done / p.Total; p.Total > 0 && done >= last+tellStep && done <= 1 {
			last = done
			gate.Advanced(done)
		}
	})
}

// tellStep is the least part of a tool's work of which the conversation is told.
const tellStep = 0.05

// prepare looks a call up and checks it, or says what becomes of it instead.
func (r *Responder) prepare(c *toolCall) (router.Prepared, *mcp.Outcome) {
	call := c.call
	var p router.Prepared
	refuse := func(why router.Refusal, id string) *mcp.Outcome {
		out := mcp.Failure(message.In(r.turn.Lang, id), "", r.lang())
		r.tools.Router.Refuse(p, why, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: out.Text})
		return &out
	}
	p, bad := r.tools.Router.Prepare(mcp.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Language: r.lang()})
	if bad != nil {
		out := bad.Outcome(r.lang())
		return p, &out
	}
	if r.quoted && !beside(&p.Offer.Tool) {
		return p, refuse(router.RefusedDenied, "agent/call-after-documents")
	}
	c.quotes = p.Offer.Tool.Quotes
	if r.made++; r.made > r.o.MaxCalls {
		return p, refuse(router.RefusedLimit, "agent/call-turn-limit")
	}
	if !r.tools.Budget.Take(time.Now(), r.o.MaxDaily) {
		return p, refuse(router.RefusedLimit, "agent/call-day-limit")
	}
	if !p.Asks() {
		return p, nil
	}
	if yes := r.turn.Allow; yes != nil && !r.question.allowed && yes.Call.Name == call.Name && yes.Call.Arguments == call.Arguments &&
		yes.Tool == p.Offer.Identity() {
		r.question.allowed = true // once: what is called again is asked again
		person := ""
		if s := r.turn.Speaker; s.Told() {
			person = s.Name
		}
		return r.tools.Router.Consent(p, person), nil
	}
	if r.question.asked != nil {
		return p, refuse(router.RefusedConsent, "agent/call-other-question")
	}
	r.question.asked = &Asked{
		Call: call, Tool: p.Offer.Identity(), Action: ActionWords(p.Offer.Tool.Name, p.Offer.Tool.Description, r.turn.Lang), By: p.By(),
	}
	c.asks = true
	return p, &mcp.Outcome{Text: message.In(r.turn.Lang, "agent/call-asks")}
}

// beside reports whether a tool may be called in a turn in which the model was given texts of strangers: it tells something, and
// what it is asked leaves the server for nowhere. Such a text can have the model want anything, also what the user would say
// yes to without a thought.
func beside(t *mcp.Tool) bool {
	reads := t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly
	return t.Quotes || t.Source == "local" && reads && (t.Stream == "time" || t.Stream == "util")
}

// settle notes what became of a call.
func (r *Responder) settle(c *toolCall, out mcp.Outcome) {
	if out.Failed {
		r.log.Warn("tool call failed", "tool", c.call.Name, "call_id", c.call.ID, "result", text.Cut(out.Text, 256))
	}
	c.outcome = out
	close(c.done)
}

// freshID returns id, or another one if id is empty or was used before: some
// endpoints give no ids, or begin to count anew in each answer.
func (r *Responder) freshID(id string) string {
	used := func(id string) bool {
		return slices.ContainsFunc(r.turn.History, func(m providers.Message) bool { return m.ToolCallID == id }) ||
			slices.ContainsFunc(r.steps, func(s *step) bool {
				return slices.ContainsFunc(s.calls, func(c *toolCall) bool { return c.call.ID == id })
			})
	}
	for n := 0; id == "" || used(id); n++ {
		id = fmt.Sprintf("call_%d_%d", r.turn.ID, n)
	}
	return id
}

// finish waits for the step's calls, acts on their outcomes in call order, and
// reports whether the model is asked once more.
func (r *Responder) finish(ctx context.Context, st *step) (again bool, err error) {
	controls, mute := true, st.said
	for _, c := range st.calls {
		if err := r.await(ctx, c.done); err != nil {
			return false, err
		}
		controls = controls && c.control
		r.quoted = r.quoted || c.quotes
		if c.outcome.Handler != nil {
			if err := r.handle(ctx, c, mute); err != nil {
				return false, err
			}
		}
		if c.outcome.Say != "" {
			if err := r.Say(ctx, c.outcome.Say); err != nil {
				return false, err
			}
			st.said = true
		}
		st.said = st.said || c.asks
		again = again || c.outcome.Again
	}
	if len(st.calls) > 0 && controls && !again && !st.said {
		return false, r.Say(ctx, r.o.Prompts.Phrase(prompts.OK, r.lang()))
	}
	return again, nil
}

// await waits for a tool to be done.
func (r *Responder) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	defer r.gate.AwaitsTool()()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handle runs the handler that a tool named, and waits for it. mute: what it would
// say is left out.
func (r *Responder) handle(ctx context.Context, c *toolCall, mute bool) error {
	name := c.outcome.Handler.FuncName
	if !r.tools.Knows(name) {
		r.log.Warn("tool named an unknown handler", "tool", c.call.Name, "handler", name)
		c.outcome = mcp.Failure(message.In(r.turn.Lang, "agent/call-failed"), "", r.lang())
		return nil
	}
	did, ran, err := r.tools.Handle(ctx, name, c.outcome.Handler.Args)
	if !ran {
		return err
	}
	if err != nil {
		r.log.Warn("handler failed", "tool", c.call.Name, "handler", name, "err", err)
		c.outcome = mcp.Failure(message.In(r.turn.Lang, "agent/call-failed")+": "+err.Error(), err.Error(), r.lang())
		return nil
	}
	c.outcome.Text, c.outcome.Again = did.Result, did.Again
	if did.Result == "" {
		c.outcome.Text = message.In(r.turn.Lang, "agent/call-done") + ": " + name
	}
	if did.HangUp {
		r.Goodbye()
	}
	if did.Call != nil {
		return r.callInstead(ctx, c, *did.Call)
	}
	if !mute {
		c.outcome.Say = did.Say
	}
	return nil
}

// callInstead makes a call whose outcome becomes that of c.
func (r *Responder) callInstead(ctx context.Context, c *toolCall, call mcp.Call) error {
	made := &toolCall{call: providers.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments}}
	p, instead := r.prepare(made)
	if c.asks = made.asks; instead != nil {
		c.outcome = *instead
		return nil
	}
	if p.Offer.Tool.Source != "local" {
		if err := r.gate.Tool(ctx, true); err != nil { // the device will be busy
			return err
		}
	}
	wait := r.tools.Router.Begin(heard(ctx, r.gate), p)
	done := make(chan struct{})
	r.calling.Go(func() {
		defer close(done)
		c.outcome = wait().Outcome(r.lang())
	})
	return r.await(ctx, done)
}

// Budget counts a device's tool calls of one day, by UTC. It is for one goroutine
// at a time.
type Budget struct {
	day  int64
	used int
}

// Take uses one call of the day's limit. False: there is none left.
func (b *Budget) Take(now time.Time, limit int) bool {
	if day := now.Unix() / 86400; day != b.day {
		b.day, b.used = day, 0
	}
	if b.used >= limit {
		return false
	}
	b.used++
	return true
}
