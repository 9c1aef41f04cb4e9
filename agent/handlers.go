package agent

import "xiaozhi/prompts"

// handled is what a handler wants of the turn.
type handled struct {
	say    string // spoken if the turn has not said anything yet
	hangUp bool   // the conversation ends after the reply
}

// handler acts on the conversation for a tool that answered CallHandler. args
// are the tool's arguments, of any shape.
type handler func(t *turn, args any) handled

// handlers are what CallHandler can name (seed 004 section 7.1).
func handlers() map[string]handler {
	return map[string]handler{
		"mcp_handler_exit": handleExit,
	}
}

// handleExit says goodbye and ends the conversation.
func handleExit(t *turn, args any) handled {
	say := t.o.Prompts.Phrase(prompts.Goodbye, t.order.language)
	if m, ok := args.(map[string]any); ok {
		if s, ok := m["say_goodbye"].(string); ok && speakable(s, t.order.language) != "" {
			say = s
		}
	}
	return handled{say: say, hangUp: true}
}
