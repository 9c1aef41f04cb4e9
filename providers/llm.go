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
}

// ToolCall is a complete request of the model to run a tool.
type ToolCall struct {
	ID        string
	Name      string // as in ToolSpec.Name
	Arguments string // JSON text as the model wrote it; may be broken
}

// ToolSpec is a tool as the model sees it.
type ToolSpec struct {
	Name        string // [A-Za-z0-9_-]{1,64}
	Description string
	Parameters  json.RawMessage // JSON Schema of type object
}

// LLMRequest is one step: one call of the model.
type LLMRequest struct {
	Messages []Message
	Tools    []ToolSpec
	NoTools  bool           // the tools stay listed, but must not be called (the forced answer)
	Language string         // "zh" or "en": the language of the turn
	Zone     *time.Location // in which it is held; nil: that of the provider
}

// Delta is a piece of the model's answer. Any of its members may be set.
type Delta struct {
	Text      string
	Thought   string     // reasoning that is not part of the answer
	ToolCalls []ToolCall // complete calls, each yielded once, as soon as its arguments are complete
	Provider  string     // the name of the model; set on every delta
	// Fallback is set by a provider that is no language model (the rules brain)
	// on text that says so, so that it is not mistaken for an answer.
	Fallback bool
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
