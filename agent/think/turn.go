package think

import (
	"context"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Options hold what the turns of all conversations share. Only FastPath may be nil.
type Options struct {
	LLM         providers.LLM
	FastPath    FastPath // asked before the model; nil: there is none
	Prompts     *prompts.Set
	Name        string        // of the assistant
	MaxSteps    int           // model calls in a turn, before one forced answer
	MaxCalls    int           // tool calls in a turn
	MaxDaily    int           // tool calls of a device in a day
	StepTimeout time.Duration // until a model that gives nothing has failed
	Zone        *time.Location
}

// Turn describes what is to be answered.
type Turn struct {
	ID      uint64
	Words   string // of the user; "": the server speaks by itself
	Lang    text.Lang
	Allow   *Asked              // the call that the user has just allowed; nil: none
	History []providers.Message // the dialogue before
	Role    string              // the name of the system prompt
	Text    string              // the system prompt itself, in place of the one of that name; "": that one
	Session wire.Session
	Agent   string // whom the device talks to
	Dialog  string // names the dialogue that History is of
	Speaker mcp.Speaker
	// Notes returns what is known beside the dialogue; nil: nothing is. It changes nothing and waits little.
	Notes func(ctx context.Context, words string) Notes
}

// Notes tell a model something before it answers.
type Notes struct {
	Always string // after the system prompt: the same from turn to turn, mostly
	Found  string // before the user's words: what has to do with them
}

// Instructions renders the system prompt of a turn.
func Instructions(o *Options, t Turn) (string, error) {
	data := prompts.Data{
		AssistantName: o.Name,
		DeviceName:    t.Session.Name,
		Language:      string(t.Lang),
		Now:           time.Now().In(o.Zone),
	}
	if t.Text != "" {
		return o.Prompts.RenderText(t.Text, t.Session.Language, data), nil
	}
	return o.Prompts.Render(t.Role, t.Session.Language, data)
}

// withNotes adds notes, and who is speaking, to a system prompt, and to what else stands before the user's words.
func withNotes(system, note, who string, n Notes) (withAlways, withFound string) {
	for _, more := range []string{n.Always, who} {
		if more != "" {
			system = strings.TrimSpace(system) + "\n\n" + more
		}
	}
	if note == "" {
		note = n.Found
	}
	return system, note
}

// requestOf makes a model call without tools: the system prompt, the dialogue before, and what the turn has brought so far.
func requestOf(o *Options, t *Turn, system, note string, own []providers.Message) providers.LLMRequest {
	messages := []providers.Message{{Role: providers.RoleSystem, Content: system}}
	messages = append(messages, t.History...)
	if note != "" {
		messages = append(messages, providers.Message{Role: providers.RoleUser, Content: note})
	}
	messages = append(messages, own...)
	return providers.LLMRequest{
		Messages: messages, Language: string(t.Lang), Zone: o.Zone, DeviceID: t.Session.DeviceID, AgentID: t.Agent, Conversation: t.Dialog,
	}
}

// Request makes the first model call of a turn, as a responder would, with these tools. Later ones have what the turn has
// brought added to their messages.
func Request(o *Options, t Turn, tools []providers.ToolSpec) (providers.LLMRequest, error) {
	system, err := Instructions(o, t)
	if err != nil {
		return providers.LLMRequest{}, err
	}
	req := requestOf(o, &t, system, "", (&Responder{o: o, turn: t}).Messages())
	req.Tools = tools
	return req, nil
}
