package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
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
type handler func(c *Conversation, t *turn, args any) (handled, error)

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

// handlerCall asks the conversation to run a handler, while the turn has the
// floor. Whoever sets taken first decides: either the handler runs and the turn
// waits for it, or the turn has given it up and it never runs.
type handlerCall struct {
	turn  *turn
	run   func(*Conversation) handledOrError
	taken *atomic.Bool
	reply chan handledOrError // size 1
}

type handledOrError struct {
	handled
	err error
}

// handle runs the handler that a tool named, on the conversation's goroutine,
// and waits for it. mute: what it would say is left out.
func (t *turn) handle(ctx context.Context, c *callRecord, mute bool) error {
	name := c.effect.handler.FuncName
	args := c.effect.handler.Args
	h, ok := handlers()[name]
	if !ok {
		t.log.Warn("tool named an unknown handler", "tool", c.call.Name, "handler", name)
		c.effect = failed(handledText(t.order.language, "调用工具失败", "tool call failed"), "", t.order.language)
		return nil
	}
	did, ran, err := t.inConversation(ctx, func(c *Conversation) (handled, error) { return h(c, t, args) })
	if !ran {
		return err
	}
	if err != nil {
		t.log.Warn("handler failed", "tool", c.call.Name, "handler", name, "err", err)
		lead := handledText(t.order.language, "调用工具失败: ", "tool call failed: ")
		c.effect = failed(lead+err.Error(), err.Error(), t.order.language)
		return nil
	}
	c.effect.result, c.effect.again = did.result, did.again
	if did.result == "" {
		c.effect.result = handledText(t.order.language, "调用工具成功: ", "the tool was called: ") + name
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

// inConversation runs f on the conversation's goroutine and waits for it. It
// says whether f was run: not if the turn was taken away before.
func (t *turn) inConversation(ctx context.Context, f func(*Conversation) (handled, error)) (did handled, ran bool, err error) {
	call := handlerCall{turn: t, taken: new(atomic.Bool), reply: make(chan handledOrError, 1), run: func(c *Conversation) (out handledOrError) {
		defer func() {
			if p := recover(); p != nil {
				t.log.Error("panic", "where", "handler", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				out.err = fmt.Errorf("%w: panic in a handler: %v", ErrFailed, p)
			}
		}()
		out.handled, out.err = f(c)
		return out
	}}
	t.report(call)
	select {
	case r := <-call.reply:
		return r.handled, true, r.err
	case <-ctx.Done():
		if call.taken.CompareAndSwap(false, true) {
			return handled{}, false, context.Cause(ctx)
		}
	case <-t.outside:
		if call.taken.CompareAndSwap(false, true) {
			return handled{}, false, ErrOver
		}
	}
	r := <-call.reply // it runs, and does not wait for anybody
	return r.handled, true, r.err
}

// ErrOver says that the conversation on which somebody outside acts has ended.
var ErrOver = errors.New("the device is not connected any more")

// runHandler runs a handler for a turn that still has the floor, or for
// somebody outside, who needs none.
func (c *Conversation) runHandler(h handlerCall) {
	if (h.turn.outside != nil || h.turn == c.turn && c.live) && h.taken.CompareAndSwap(false, true) {
		h.reply <- h.run(c)
	}
}

// runInstead makes a call whose outcome becomes the result of the call c.
func (t *turn) runInstead(ctx context.Context, c *callRecord, call mcp.Call) error {
	p, instead := t.prepare(providers.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
	if instead != nil {
		c.effect = *instead
		return nil
	}
	if p.Offer.Tool.Source != "local" {
		t.speaker.begin() // the device will be busy
	}
	wait := t.tools.Begin(ctx, p)
	done := make(chan struct{})
	t.calling.Go(func() {
		defer close(done)
		c.effect = dispatch(wait(), t.order.language)
	})
	return t.await(ctx, done)
}

// handleExit says goodbye and ends the conversation.
func handleExit(c *Conversation, t *turn, args any) (handled, error) {
	a, err := mcp.DecodeArgs[mcp.ExitArgs](args)
	if err != nil {
		return handled{}, err
	}
	say := a.SayGoodbye
	if segments.Speakable(say, text.Lang(t.order.language)) == "" {
		say = c.o.Prompts.Phrase(prompts.Goodbye, t.order.language)
	}
	return handled{say: say, hangUp: true}, nil
}

// handleTakePhoto has the device's camera look.
func handleTakePhoto(c *Conversation, t *turn, args any) (handled, error) {
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
		return handled{call: &mcp.Call{ID: fmt.Sprintf("photo_%d", t.id), Name: o.LLMName, Arguments: arguments}}, nil
	}
	return handled{
		result: handledText(t.order.language, "这台设备没有摄像头。", "this device has no camera."), again: true,
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
func handleForget(c *Conversation, t *turn, _ any) (handled, error) {
	c.dev.history.clear()
	t.forgotten = true
	return handled{say: c.o.Prompts.Phrase(prompts.Forgotten, t.order.language)}, nil
}

// handleChangeRole takes another system prompt from the next turn on.
func handleChangeRole(c *Conversation, t *turn, args any) (handled, error) {
	a, err := mcp.DecodeArgs[mcp.RoleArgs](args)
	if err != nil {
		return handled{}, err
	}
	if a.Role == "" || a.Role == c.o.Prompt {
		c.dev.role = ""
		return handled{say: c.o.Prompts.Phrase(prompts.RoleBack, t.order.language)}, nil
	}
	if !c.o.Prompts.Has(a.Role) {
		return handled{}, fmt.Errorf("%s: %q", handledText(t.order.language, "没有这个角色", "there is no such role"), a.Role)
	}
	c.dev.role = a.Role
	return handled{say: c.o.Prompts.Phrase(prompts.RoleChanged, t.order.language)}, nil
}
