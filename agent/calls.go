package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/mcp"
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
		return c.effect.result
	default:
		return resultCancelled
	}
}

// startCall begins a tool call. Controls are sent and taken to succeed; all
// others are awaited by settle.
func (t *turn) startCall(ctx context.Context, st *step, call providers.ToolCall, calls *sync.WaitGroup) error {
	call.ID = t.freshID(call.ID)
	rec := &callRecord{call: call, done: make(chan struct{})}
	st.calls = append(st.calls, rec)
	settled := func(e effect) {
		if e.failed {
			t.log.Warn("tool call failed", "tool", call.Name, "call_id", call.ID, "result", clip(e.result, 256))
		}
		rec.effect = e
		close(rec.done)
	}
	p, bad := t.tools.Prepare(mcp.Call{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	if bad != nil {
		settled(dispatch(*bad, t.order.language))
		return nil
	}
	if !t.floor.commit() {
		return context.Cause(ctx) // undone in the meantime: the tool never runs
	}
	remote := p.Offer.Tool.Source != "local"
	if remote && (p.Offer.Kind == mcp.Control || strings.HasPrefix(p.Offer.Tool.Name, "self.camera.")) {
		// The tool holds the device's main task: a later tts start would wait behind it.
		t.speaker.begin()
	}
	if remote && p.Offer.Kind == mcp.Control {
		rec.control = true
		p.Info = mcp.InfoFrom(ctx)
		if err := t.tools.Go(p, func(r mcp.ActionResponse) { t.late(p, r) }); err != nil {
			settled(dispatch(mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}, t.order.language))
			return nil
		}
		settled(effect{result: resultAssumed})
		return nil
	}
	began := time.Now()
	wait := t.tools.Begin(ctx, p) // here, so that a device gets its calls in their order
	calls.Go(func() {
		r := wait()
		t.timing.tool(p.Offer.Tool.Name, time.Since(began))
		settled(dispatch(r, t.order.language))
	})
	return nil
}

// freshID is id, or another one if id is empty or was used before: some
// endpoints give no ids, or begin to count anew in each answer.
func (t *turn) freshID(id string) string {
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
func (t *turn) settle(ctx context.Context, st *step) (again bool, err error) {
	controls := true
	for _, c := range st.calls {
		select {
		case <-c.done:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		controls = controls && c.control
		if c.effect.handler != nil {
			if err := t.handle(ctx, st, c); err != nil {
				return false, err
			}
		}
		if c.effect.say != "" {
			if err := t.sayOwn(ctx, c.effect.say); err != nil {
				return false, err
			}
			st.said = true
		}
		again = again || c.effect.again
	}
	if len(st.calls) > 0 && controls && !again && !st.said {
		return false, t.sayOwn(ctx, t.o.Prompts.Phrase(prompts.OK, t.order.language))
	}
	return again, nil
}

// handle runs the handler that a tool named.
func (t *turn) handle(ctx context.Context, st *step, c *callRecord) error {
	name := c.effect.handler.FuncName
	h, ok := handlers()[name]
	if !ok {
		t.log.Warn("tool named an unknown handler", "tool", c.call.Name, "handler", name)
		c.effect.result, c.effect.again = handledText(t.order.language, "调用工具失败", "tool call failed"), true
		return nil
	}
	c.effect.result = handledText(t.order.language, "调用工具成功: ", "the tool was called: ") + name
	did := h(t, c.effect.handler.Args)
	t.hangUp = t.hangUp || did.hangUp
	if did.say == "" || st.said {
		return nil
	}
	st.said = true
	return t.sayOwn(ctx, did.say)
}

// handledText is the text in the language of the turn.
func handledText(language, zh, en string) string {
	if language == "zh" {
		return zh
	}
	return en
}
