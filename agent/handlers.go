package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"xiaozhi/internal/text"
	segments "xiaozhi/internal/text/sentence"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// handled is what a handler wants of the turn.
type handled struct {
	result string    // the call's result in the history; "": that the handler was run
	say    string    // spoken, if the step has not said anything yet
	again  bool      // the model is asked once more
	hangUp bool      // the conversation ends after the reply
	call   *mcp.Call // a call to make in its stead: its outcome is the result
}

// handler acts on the conversation for a tool that answered CallHandler. It
// runs on the conversation's goroutine and must not wait. args are the tool's
// arguments, of any shape; an error says what is wrong with them.
type handler func(c *Conversation, from caller, args any) (handled, error)

// handlers are what CallHandler can name (seed 004 section 7.1).
func handlers() map[string]handler {
	return map[string]handler{
		mcp.HandlerExit:       handleExit,
		mcp.HandlerTakePhoto:  handleTakePhoto,
		mcp.HandlerPlayMusic:  handlePlayMusic,
		mcp.HandlerChangeRole: handleChangeRole,
		mcp.HandlerForget:     handleForget,
		mcp.HandlerTimer:      handleTimer,
	}
}

// caller is who has a handler run: a turn, or somebody outside.
type caller struct {
	lang  string
	reply *reply // nil: somebody outside
}

// call asks the conversation to run f, for a turn while it has the floor, or for
// somebody outside. Whoever sets taken first decides: either f runs and the
// caller waits for it, or the caller has given it up and it never runs.
type call struct {
	turn  uint64 // 0: somebody outside
	f     func(*Conversation) error
	taken *atomic.Bool
	done  chan error // size 1
}

// handle runs the handler that a tool named, on the conversation's goroutine,
// and waits for it. mute: what it would say is left out.
func (t *reply) handle(ctx context.Context, c *callRecord, mute bool) error {
	name := c.effect.handler.FuncName
	args := c.effect.handler.Args
	h, ok := handlers()[name]
	if !ok {
		t.log.Warn("tool named an unknown handler", "tool", c.call.Name, "handler", name)
		c.effect = failed(handledText(t.order.lang(), "调用工具失败", "tool call failed"), "", t.order.lang())
		return nil
	}
	var did handled
	ran, err := ask(ctx, t.post, nil, t.id, func(c *Conversation) (err error) {
		did, err = h(c, caller{t.order.lang(), t}, args)
		return err
	})
	if !ran {
		return err
	}
	if err != nil {
		t.log.Warn("handler failed", "tool", c.call.Name, "handler", name, "err", err)
		lead := handledText(t.order.lang(), "调用工具失败: ", "tool call failed: ")
		c.effect = failed(lead+err.Error(), err.Error(), t.order.lang())
		return nil
	}
	c.effect.result, c.effect.again = did.result, did.again
	if did.result == "" {
		c.effect.result = handledText(t.order.lang(), "调用工具成功: ", "the tool was called: ") + name
	}
	if did.hangUp {
		t.goodbye()
	}
	if did.call != nil {
		return t.runInstead(ctx, c, *did.call)
	}
	if !mute {
		c.effect.say = did.say
	}
	return nil
}

// ask runs f on the conversation's goroutine and waits for it. It says whether f
// was run: not if the turn was taken away, or ctx or the conversation has ended
// before.
func ask(ctx context.Context, post func(any), over <-chan struct{}, id uint64, f func(*Conversation) error) (ran bool, err error) {
	c := call{turn: id, f: f, taken: new(atomic.Bool), done: make(chan error, 1)}
	post(c)
	select {
	case err := <-c.done:
		return true, err
	case <-ctx.Done():
		if c.taken.CompareAndSwap(false, true) {
			return false, context.Cause(ctx)
		}
	case <-over:
		if c.taken.CompareAndSwap(false, true) {
			return false, ErrOver
		}
	}
	return true, <-c.done // it runs, and does not wait for anybody
}

// ErrOver says that the conversation on which somebody outside acts has ended.
var ErrOver = errors.New("the device is not connected any more")

// runCall runs a call of a turn that still has the floor, or of somebody outside,
// who needs none.
func (c *Conversation) runCall(k call) {
	if k.turn != 0 && !c.state.Runs(k.turn) || !k.taken.CompareAndSwap(false, true) {
		return
	}
	k.done <- protect(c.log, "handler", func() error { return k.f(c) })
	c.setTimer()
}

// runInstead makes a call whose outcome becomes the result of the call c.
func (t *reply) runInstead(ctx context.Context, c *callRecord, call mcp.Call) error {
	p, instead := t.prepare(providers.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	if instead != nil {
		c.effect = *instead
		return nil
	}
	if p.Offer.Tool.Source != "local" {
		if err := t.acquire(ctx, true); err != nil { // the device will be busy
			return err
		}
	}
	wait := t.tools.Begin(ctx, p)
	done := make(chan struct{})
	t.calling.Go(func() {
		defer close(done)
		c.effect = dispatch(wait(), t.order.lang())
	})
	return t.await(ctx, done)
}

// handleExit says goodbye and ends the conversation.
func handleExit(c *Conversation, from caller, args any) (handled, error) {
	a, err := mcp.DecodeArgs[mcp.ExitArgs](args)
	if err != nil {
		return handled{}, err
	}
	say := a.SayGoodbye
	if segments.Speakable(say, text.Lang(from.lang)) == "" {
		say = c.o.Prompts.Phrase(prompts.Goodbye, from.lang)
	}
	return handled{say: say, hangUp: true}, nil
}

// handleTakePhoto has the device's camera look.
func handleTakePhoto(c *Conversation, from caller, args any) (handled, error) {
	a, err := mcp.DecodeArgs[mcp.PhotoArgs](args)
	if err != nil {
		return handled{}, err
	}
	for _, o := range c.tools.Offers() {
		if o.Tool.Name != a.Tool || a.Tool == "" {
			continue
		}
		arguments, err := photoArguments(a)
		if err != nil {
			return handled{}, err
		}
		return handled{call: &mcp.Call{ID: fmt.Sprintf("photo_%d", from.turn()), Name: o.LLMName, Arguments: arguments}}, nil
	}
	return handled{
		result: handledText(from.lang, "这台设备没有摄像头。", "this device has no camera."), again: true,
	}, nil
}

// photoArguments are those of the device's camera tool.
func photoArguments(a mcp.PhotoArgs) (string, error) {
	if a.Argument == "" {
		return "{}", nil
	}
	text, err := json.Marshal(map[string]string{a.Argument: a.Question})
	if err != nil {
		return "", fmt.Errorf("encode the question: %w", err)
	}
	return string(text), nil
}

// handleForget begins the dialogue anew: neither what was said before nor this
// turn is kept.
func handleForget(c *Conversation, from caller, _ any) (handled, error) {
	c.dev.history.clear()
	if from.reply != nil {
		from.reply.forgotten = true
	}
	return handled{say: c.o.Prompts.Phrase(prompts.Forgotten, from.lang)}, nil
}

// handleChangeRole takes another system prompt from the next turn on.
func handleChangeRole(c *Conversation, from caller, args any) (handled, error) {
	a, err := mcp.DecodeArgs[mcp.RoleArgs](args)
	if err != nil {
		return handled{}, err
	}
	if a.Role == "" || a.Role == c.o.Prompt {
		c.dev.role = ""
		return handled{say: c.o.Prompts.Phrase(prompts.RoleBack, from.lang)}, nil
	}
	if !c.o.Prompts.Has(a.Role) {
		return handled{}, fmt.Errorf("%s: %q", handledText(from.lang, "没有这个角色", "there is no such role"), a.Role)
	}
	c.dev.role = a.Role
	return handled{say: c.o.Prompts.Phrase(prompts.RoleChanged, from.lang)}, nil
}

// turn is the number of the caller's turn; 0: it has none.
func (f caller) turn() uint64 {
	if f.reply == nil {
		return 0
	}
	return f.reply.id
}
