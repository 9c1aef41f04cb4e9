package coze

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// event holds the fields of all events: of a chat, a message or an error.
type event struct {
	ID       string `json:"id"` // of the chat, or the message
	Chat     string `json:"chat_id"`
	Talk     string `json:"conversation_id"`
	Type     string `json:"type"`
	Content  string `json:"content"`
	Thought  string `json:"reasoning_content"`
	Code     number `json:"code"`
	Msg      string `json:"msg"`
	Detail   detail `json:"detail"`
	LastFail struct {
		Code number `json:"code"`
		Msg  string `json:"msg"`
	} `json:"last_error"`
	Usage struct {
		Input  int `json:"input_count"`
		Output int `json:"output_count"`
	} `json:"usage"`
	Required struct {
		Submit struct {
			Calls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"submit_tool_outputs"`
	} `json:"required_action"`
}

type detail struct {
	LogID string `json:"logid"`
}

// number is a code, which may be written as a text.
type number string

// UnmarshalJSON takes a number or a text.
func (n *number) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	if text == "0" || text == "null" {
		text = ""
	}
	*n = number(text)
	return nil
}

// answer reads one answer.
type answer struct {
	turn    *platform.Turn
	owner   string
	message string // whose pieces came last
	spoke   bool   // there is text of that message
}

// Event reads one event. Those that are not known pass.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	if e.Name == "done" || string(e.Data) == sse.Done || string(e.Data) == strconv.Quote(sse.Done) {
		return false, errors.New("the server ended the answer before it was complete")
	}
	var ev event
	if err := json.Unmarshal(e.Data, &ev); err != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	a.turn.Talk = cmp.Or(ev.Talk, a.turn.Talk)
	switch e.Name {
	case "conversation.chat.created", "conversation.chat.in_progress":
		a.turn.Run = cmp.Or(ev.ID, a.turn.Run)
	case "conversation.message.delta":
		a.delta(&ev, give)
	case "conversation.message.completed":
		a.whole(&ev, give)
	case "conversation.chat.completed":
		give(providers.Delta{Usage: providers.Usage{Prompt: ev.Usage.Input, Completion: ev.Usage.Output}})
		return true, nil
	case "conversation.chat.requires_action":
		a.turn.Run = cmp.Or(ev.ID, a.turn.Run)
		return a.calls(&ev, give)
	case "conversation.chat.failed", "conversation.chat.canceled":
		return false, fault(cmp.Or(ev.LastFail.Code, ev.Code), cmp.Or(ev.LastFail.Msg, ev.Msg, "the bot has failed"), ev.Detail.LogID)
	case "error", "":
		if e.Name == "error" || ev.Code != "" {
			return false, fault(ev.Code, cmp.Or(ev.Msg, "the server ended the answer with an error"), ev.Detail.LogID)
		}
	}
	return false, nil
}

func fault(code number, text, log string) error {
	return &transport.Refusal{Kind: providers.Unavailable, Code: string(code), Text: text, LogID: log}
}

// delta takes a piece of a message. Only what the bot answers is said.
func (a *answer) delta(ev *event, give generation.Give) {
	a.turn.Run = cmp.Or(a.turn.Run, ev.Chat)
	if ev.Type != "answer" {
		return
	}
	if ev.ID != a.message {
		a.message, a.spoke = ev.ID, false
	}
	a.spoke = a.spoke || ev.Content != ""
	give(providers.Delta{Text: ev.Content, Thought: ev.Thought})
}

// whole takes a message that is complete: it is said if no piece of it came.
func (a *answer) whole(ev *event, give generation.Give) {
	if ev.Type == "answer" && (ev.ID != a.message || !a.spoke) {
		a.message, a.spoke = ev.ID, true
		give(providers.Delta{Text: ev.Content})
	}
}

// calls gives what the bot wants of our tools. The step is over by that.
func (a *answer) calls(ev *event, give generation.Give) (bool, error) {
	if a.turn.NoTools {
		return false, errors.New("the bot asks for a tool where none may be used")
	}
	at, err := json.Marshal(pending{a.turn.Run, a.turn.Talk})
	if err != nil {
		return false, fmt.Errorf("keep the answer's name: %w", err)
	}
	var calls []providers.ToolCall
	for _, c := range ev.Required.Submit.Calls {
		if c.ID == "" || c.Function.Name == "" {
			return false, errors.New("a tool call has no name")
		}
		calls = append(calls, providers.ToolCall{
			ID: c.ID, Name: c.Function.Name, Arguments: cmp.Or(c.Function.Arguments, "{}"), Echo: providers.NewEcho(a.owner, string(at)),
		})
	}
	if len(calls) == 0 {
		return false, errors.New("the bot asks for something that is no tool")
	}
	a.turn.Waits = true
	give(providers.Delta{ToolCalls: calls})
	return true, nil
}

// EOF ends an answer: nothing has said that it is complete.
func (a *answer) EOF(generation.Give) error { return generation.ErrIncomplete }

// End has nothing left to give.
func (a *answer) End(generation.Give) error { return nil }
