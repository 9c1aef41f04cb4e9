package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/sentence"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// handler acts on the conversation for a tool that answered CallHandler. It
// runs on the conversation's goroutine and must not wait. args are the tool's
// arguments, of any shape; an error says what is wrong with them.
type handler func(c *Conversation, from feature.Caller, args any) (think.Handled, error)

// handlers returns the handlers that a tool can name (docs/mcp.md, Dialects).
func handlers() map[string]handler {
	return map[string]handler{
		mcp.HandlerExit:       handleExit,
		mcp.HandlerTakePhoto:  handleTakePhoto,
		mcp.HandlerChangeRole: handleChangeRole,
		mcp.HandlerForget:     handleForget,
	}
}

// knows reports whether there is a handler of that name.
func (c *Conversation) knows(name string) bool {
	return handlers()[name] != nil || c.features.handlers[name] != nil
}

// handle runs the handler of a name.
func (c *Conversation) handle(name string, from feature.Caller, args any) (think.Handled, error) {
	if h := handlers()[name]; h != nil {
		return h(c, from, args)
	}
	if h := c.features.handlers[name]; h != nil {
		return h(from, args)
	}
	return think.Handled{}, fmt.Errorf("there is no handler named %q", name)
}

// call asks the conversation to run f, for a turn while it has the floor, or for
// somebody outside. Whoever sets taken first decides: either f runs and the
// caller waits for it, or the caller has given it up and it never runs.
type call struct {
	turn  uint64 // 0: somebody outside
	f     func() error
	taken *atomic.Bool
	done  chan error // size 1
}

// ask runs f on the conversation's goroutine and waits for it. It says whether f
// was run: not if the turn was taken away, or ctx or the conversation has ended
// before.
func ask(ctx context.Context, post func(any), over <-chan struct{}, id uint64, f func() error) (ran bool, err error) {
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
			return false, feature.ErrOver
		}
	}
	return true, <-c.done // it runs, and does not wait for anybody
}

// runCall runs a call of a turn that still has the floor, or of somebody outside,
// who needs none.
func (c *Conversation) runCall(k call) {
	if k.turn != 0 && !c.state.Runs(k.turn) || !k.taken.CompareAndSwap(false, true) {
		return
	}
	k.done <- protect(c.log, "handler", k.f)
	c.setTimer()
}

// handleExit says goodbye and ends the conversation.
func handleExit(c *Conversation, from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.ExitArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	say := a.SayGoodbye
	if sentence.Speakable(say, from.Lang) == "" {
		say = c.o.Prompts.Phrase(prompts.Goodbye, string(from.Lang))
	}
	return think.Handled{Say: say, HangUp: true}, nil
}

// handleTakePhoto has the device's camera look.
func handleTakePhoto(c *Conversation, from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.PhotoArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	for _, o := range c.tools.Offers() {
		if o.Tool.Name != a.Tool || a.Tool == "" {
			continue
		}
		arguments, err := photoArguments(a)
		if err != nil {
			return think.Handled{}, err
		}
		return think.Handled{Call: &mcp.Call{ID: fmt.Sprintf("photo_%d", from.Turn), Name: o.LLMName, Arguments: arguments}}, nil
	}
	return think.Handled{
		Result: message.In(from.Lang, "agent/photo-none"), Again: true,
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
func handleForget(c *Conversation, from feature.Caller, _ any) (think.Handled, error) {
	c.dev.history.Clear()
	if from.Turn != 0 {
		c.reply.marks.forgotten = true // the caller's, for it has the floor
	}
	return think.Handled{Say: c.o.Prompts.Phrase(prompts.Forgotten, string(from.Lang))}, nil
}

// handleChangeRole takes another system prompt from the next turn on.
func handleChangeRole(c *Conversation, from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.RoleArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	if a.Role == "" || a.Role == c.o.Prompt {
		c.dev.role = ""
		return think.Handled{Say: c.o.Prompts.Phrase(prompts.RoleBack, string(from.Lang))}, nil
	}
	if !c.o.Prompts.Has(a.Role) {
		return think.Handled{}, fmt.Errorf("%s: %q", message.In(from.Lang, "agent/role-none"), a.Role)
	}
	c.dev.role = a.Role
	return think.Handled{Say: c.o.Prompts.Phrase(prompts.RoleChanged, string(from.Lang))}, nil
}
