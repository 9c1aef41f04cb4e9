package providers

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Role is the author of a message.
type Role string

// The roles, as every OpenAI-compatible endpoint names them.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a dialogue.
type Message struct {
	Role       Role
	Content    string
	Images     []Image    // only of the user, for models that can see; others may refuse them
	ToolCalls  []ToolCall // only of the assistant
	ToolCallID string     // only of a tool: which call this answers
	Echo       Echo       `json:",omitzero"` // only of the assistant
}

// ToolCall is a complete request of the model to run a tool.
type ToolCall struct {
	ID        string
	Name      string // as in ToolSpec.Name
	Arguments string // JSON text as the model wrote it; may be broken
	Echo      Echo   `json:",omitzero"`
}

// MaxEcho bounds an [Echo], in bytes. A longer one is not kept.
const MaxEcho = 64 << 10

// Echo goes back unchanged with a message or a call to the model that made it, which
// would refuse the dialogue or answer worse without it: its reasoning, a signature.
// Nobody else looks into it or is sent it. The zero value stands for none.
type Echo struct {
	Owner string // who wants it: the provider's name, and its model
	JSON  string // at most [MaxEcho] bytes
}

// NewEcho makes the echo of an owner; it is none if the text is too long or no JSON.
func NewEcho(owner, text string) Echo {
	if text == "" || len(text) > MaxEcho || !json.Valid([]byte(text)) {
		return Echo{}
	}
	return Echo{Owner: owner, JSON: text}
}

// For returns the JSON text, if it is that owner's; "" if it is not.
func (e Echo) For(owner string) string {
	if e.Owner != owner {
		return ""
	}
	return e.JSON
}

// ToolSpec is a tool as the model sees it.
type ToolSpec struct {
	Name        string // [A-Za-z_][A-Za-z0-9_-]{0,63}
	Description string
	Parameters  json.RawMessage // JSON Schema of type object
}

// LLMRequest is one step: one call of the model.
type LLMRequest struct {
	Messages []Message
	Before   []Message // what was said before Messages, of which a stateful provider is told only when it has lost it
	Tools    []ToolSpec
	NoTools  bool           // the tools stay listed, but must not be called (the forced answer)
	Language string         // a tag of BCP 47: the language of the turn
	Zone     *time.Location // in which it is held; nil: that of the provider

	// Who talks, for services that keep a dialogue themselves. Each may be "".
	DeviceID     string // of the device
	AgentID      string // whom the device talks to
	Conversation string // names the dialogue: another one when it is forgotten or the device was long away

	// Certain is closed when the user has surely finished: until then the request is
	// a trial, which may be given up. nil: he has.
	Certain <-chan struct{}
}

// Delta is a piece of the model's answer. Any of its members may be set.
type Delta struct {
	Text      string
	Thought   string     // reasoning that is not part of the answer
	ToolCalls []ToolCall // complete calls, each yielded once, as soon as its arguments are complete
	Provider  string     // the name of the model; set on every delta
	Echo      Echo       `json:",omitzero"` // of the message that the step makes; a later one replaces it
	Usage     Usage      `json:",omitzero"` // what the step has cost; with the last delta, where it is known
	// Fallback is set by a provider that is no language model (the rules brain)
	// on text that says so, so that it is not mistaken for an answer.
	Fallback bool
}

// Usage counts the tokens of a step. The zero value stands for unknown.
type Usage struct {
	Prompt     int // all that was sent
	Cached     int // of Prompt: what the service had kept from before
	Completion int // all that was made, reasoning included
	Reasoning  int // of Completion
}

// LLM is a language model.
type LLM interface {
	// Name is the provider's name in the config and in logs.
	Name() string
	// Generate streams one step. Leaving the loop closes the request. An error
	// ends the stream; it is always the last thing yielded.
	Generate(ctx context.Context, req LLMRequest) iter.Seq2[Delta, error]
}

// Image is a picture that goes with a message.
type Image struct {
	MIMEType string // image/jpeg, image/png, image/gif or image/webp
	Data     []byte // the file as it is; read-only
}
