package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// callRecord is one tool call of a step.
type callRecord struct {
	call    providers.ToolCall
	control bool          // its success was assumed
	done    chan struct{} // closed when effect is set
	effect  effect
}

// result is the call's text for the history, whatever state it is in.
func (c *callRecord) result() string {
	select {
	case <-c.done:
	default:
		return resultCancelled
	}
	if c.effect.handler != nil && c.effect.result == "" {
		return resultCancelled // the turn ended before its handler
	}
	return c.effect.result
}

// startCall begins a tool call. Controls are sent and taken to succeed, jobs
// go on by themselves; all others are awaited by settle.
func (t *reply) startCall(ctx context.Context, st *step, call providers.ToolCall) error {
	if err := t.player.AwaitOpen(ctx); err != nil {
		return err // a turn on trial does nothing that cannot be undone
	}
	call.ID = t.freshID(call.ID)
	rec := &callRecord{call: call, done: make(chan struct{})}
	st.calls = append(st.calls, rec)
	p, e := t.prepare(call)
	if e != nil {
		t.settled(rec, *e)
		return nil
	}
	remote := p.Offer.Tool.Source != "local"
	if err := t.acquire(ctx, remote && (p.Offer.Kind == mcp.Control || strings.HasPrefix(p.Offer.Tool.Name, "self.camera."))); err != nil {
		return err // undone in the meantime: the tool never runs
	}
	p.Info = mcp.InfoFrom(ctx)
	switch {
	case p.Offer.Job:
		t.startJob(ctx, rec, p)
	case remote && p.Offer.Kind == mcp.Control:
		t.startControl(rec, p)
	default:
		began := time.Now()
		wait := t.tools.Begin(ctx, p) // here, so that a device gets its calls in their order
		t.calling.Go(func() {
			r := wait()
			t.times.Tool(p.Offer.Tool.Name, time.Since(began))
			t.settled(rec, dispatch(r, t.order.lang()))
		})
	}
	return nil
}

// prepare looks a call up and checks it, or says what becomes of it instead.
func (t *reply) prepare(call providers.ToolCall) (router.Prepared, *effect) {
	lang := t.order.lang()
	refuse := func(zh, en string) *effect {
		e := failed(handledText(lang, zh, en), "", lang)
		return &e
	}
	p, bad := t.tools.Prepare(mcp.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Language: lang})
	if bad != nil {
		e := dispatch(*bad, lang)
		return p, &e
	}
	if t.made++; t.made > t.o.MaxCalls {
		return p, refuse("这一轮的工具调用次数用完了", "no more tool calls are allowed in this turn")
	}
	if !t.calls.take(time.Now(), t.o.MaxDaily) {
		return p, refuse("今天的工具调用次数用完了", "no more tool calls are allowed today")
	}
	if !p.Offer.Consent {
		return p, nil
	}
	if yes := t.order.allow; yes != nil && !t.allowed && yes.Name == call.Name && yes.Arguments == call.Arguments {
		t.allowed = true // once: what is called again is asked again
		return p, nil
	}
	if t.asked != nil {
		return p, refuse("还没有执行：正在请用户确认另一件事", "not done: the user is being asked about something else")
	}
	t.asked, t.action = &call, actionWords(p.Offer.Tool.Name, p.Offer.Tool.Description, lang)
	return p, &effect{result: handledText(lang,
		"还没有执行：接下来会由系统请用户确认，你不要再问。",
		"not done yet: the user is asked to confirm by the system after your words; do not ask yourself."), asks: true}
}

// settled notes what became of a call.
func (t *reply) settled(rec *callRecord, e effect) {
	if e.failed {
		t.log.Warn("tool call failed", "tool", rec.call.Name, "call_id", rec.call.ID, "result", clip(e.result, 256))
	}
	rec.effect = e
	close(rec.done)
}

// startControl sends a control and takes it to succeed.
func (t *reply) startControl(rec *callRecord, p router.Prepared) {
	rec.control = true
	if err := t.tools.Go(p, func(r mcp.ActionResponse) { t.late(p, r) }); err != nil {
		rec.control = false
		t.settled(rec, dispatch(mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}, t.order.lang()))
		return
	}
	t.settled(rec, effect{result: resultAssumed})
}

// startJob begins what takes long: the model can say so, and the result is told
// when it is there.
func (t *reply) startJob(ctx context.Context, rec *callRecord, p router.Prepared) {
	if err := t.mail.start(ctx, p, t.tools.Detach); err != nil {
		why := err.Error()
		if t.order.lang() == "zh" {
			why = map[error]string{
				errJobs: "同时进行的任务太多了", errJobRun: "同样的任务还在进行，完成后会告诉用户", errNoJobs: "服务器正在关闭",
			}[err]
		}
		t.settled(rec, failed(why, "", t.order.lang()))
		return
	}
	t.settled(rec, effect{again: true, result: handledText(t.order.lang(),
		"已经开始执行，需要一些时间。完成后会自动告诉用户结果，不要再次调用。",
		"it has begun and takes a while. The user will be told the result when it is there; do not call it again.")})
}

// freshID is id, or another one if id is empty or was used before: some
// endpoints give no ids, or begin to count anew in each answer.
func (t *reply) freshID(id string) string {
	used := func(id string) bool {
		return slices.ContainsFunc(t.history, func(m providers.Message) bool { return m.ToolCallID == id }) ||
			slices.ContainsFunc(t.steps, func(s *step) bool {
				return slices.ContainsFunc(s.calls, func(c *callRecord) bool { return c.call.ID == id })
			})
	}
	for n := 0; id == "" || used(id); n++ {
		id = fmt.Sprintf("call_%d_%d", t.id, n)
	}
	return id
}

// settle waits for the step's calls, acts on their effects in call order, and
// reports whether the model is asked once more.
func (t *reply) settle(ctx context.Context, st *step) (again bool, err error) {
	controls, mute := true, st.said
	for _, c := range st.calls {
		if err := t.await(ctx, c.done); err != nil {
			return false, err
		}
		controls = controls && c.control
		if c.effect.handler != nil {
			if err := t.handle(ctx, c, mute); err != nil {
				return false, err
			}
		}
		if c.effect.say != "" {
			if err := t.sayOwn(ctx, c.effect.say); err != nil {
				return false, err
			}
			st.said = true
		}
		st.said = st.said || c.effect.asks
		again = again || c.effect.again
	}
	if len(st.calls) > 0 && controls && !again && !st.said {
		return false, t.sayOwn(ctx, t.o.Prompts.Phrase(prompts.OK, t.order.lang()))
	}
	return again, nil
}

// handledText is the text in the language of the turn.
func handledText(language, zh, en string) string {
	if language == "zh" {
		return zh
	}
	return en
}
