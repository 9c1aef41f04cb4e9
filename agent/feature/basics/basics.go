// Package basics completes the tools that act on the conversation itself: they end
// it, take a picture, change the assistant's role, forget what was said.
package basics

import (
	"encoding/json"
	"fmt"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/sentence"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// Feature has the handlers exit, photo, role and forget (docs/mcp.md, Dialects).
type Feature struct{}

// Name is the name of its state, which it does not have.
func (Feature) Name() string { return "basics" }

// Attach makes the handlers.
func (Feature) Attach(h feature.Host, _ feature.State) feature.Instance { return basics{h} }

type basics struct{ feature.Host }

func (basics) Expects(time.Time) bool { return false }
func (basics) Detach() feature.State  { return nil }

func (b basics) Handler(name string) feature.Handler {
	switch name {
	case mcp.HandlerExit:
		return b.exit
	case mcp.HandlerTakePhoto:
		return b.takePhoto
	case mcp.HandlerChangeRole:
		return b.changeRole
	case mcp.HandlerForget:
		return b.forget
	}
	return nil
}

func (b basics) say(id string, from feature.Caller) think.Handled {
	return think.Handled{Say: b.Env().Texts.Phrase(id, string(from.Lang))}
}

func (b basics) exit(from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.ExitArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	did := b.say(prompts.Goodbye, from)
	did.HangUp = true
	if sentence.Speakable(a.SayGoodbye, from.Lang) != "" {
		did.Say = a.SayGoodbye
	}
	return did, nil
}

func (b basics) takePhoto(from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.PhotoArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	for _, o := range b.Env().Tools.Offers() {
		if o.Tool.Name != a.Tool || a.Tool == "" {
			continue
		}
		arguments := []byte("{}")
		if a.Argument != "" {
			if arguments, err = json.Marshal(map[string]string{a.Argument: a.Question}); err != nil {
				return think.Handled{}, fmt.Errorf("encode the question: %w", err)
			}
		}
		return think.Handled{Call: &mcp.Call{ID: fmt.Sprintf("photo_%d", from.Turn), Name: o.LLMName, Arguments: string(arguments)}}, nil
	}
	return think.Handled{Result: message.In(from.Lang, "agent/photo-none"), Again: true}, nil
}

func (b basics) forget(from feature.Caller, _ any) (think.Handled, error) {
	b.Forget(from.Turn)
	return b.say(prompts.Forgotten, from), nil
}

// changeRole takes another agent, with its voice and its engines, from the next turn on.
func (b basics) changeRole(from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.RoleArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	switch other, err := b.SetRole(a.Role); {
	case err != nil:
		return think.Handled{}, fmt.Errorf("%s: %q", message.In(from.Lang, "agent/role-none"), a.Role)
	case other:
		return b.say(prompts.RoleChanged, from), nil
	}
	return b.say(prompts.RoleBack, from), nil
}
