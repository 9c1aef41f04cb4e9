// Package mcp is the model of a tool: what it is called, where it runs, what a call of it brings.
// Sources of tools are in the packages below it, as is the router that offers them to a model.
package mcp

import (
	"encoding/json"
	"time"
)

// Limits on what a device may send us and what we send to it.
const (
	MaxSend     = 7 << 10 // bytes of one payload to a device, which takes 8 KiB with the envelope
	MaxTools    = 256     // tools of one device
	MaxToolName = 256     // bytes of a tool's name

	MaxDescription = 4 << 10   // bytes of a tool's description; the rest is cut
	MaxToolList    = 128 << 10 // bytes of the names, descriptions and schemas of one device's tools; more are left out
)

// Origin says where a tool runs (main_type in the light dialect).
type Origin string

// The origins.
const (
	Remote Origin = "remote" // the device or another server runs it
	Local  Origin = "local"  // this server runs it
)

// Kind says whether a tool's result is awaited (sub_type in the light dialect).
type Kind string

// The kinds. The zero value means not declared: see [ExplainKind].
const (
	Control Kind = "control" // success is assumed at once, the true result comes later
	Query   Kind = "query"   // the result is awaited and goes back to the model
)

// Annotations are a tool's hints, as MCP names them.
type Annotations struct {
	ReadOnly    *bool    `json:"readOnlyHint,omitempty"`
	Destructive *bool    `json:"destructiveHint,omitempty"`
	Idempotent  *bool    `json:"idempotentHint,omitempty"`
	Audience    []string `json:"audience,omitempty"`
}

// Destroys reports whether the tool says of itself that it destroys something. MCP's
// default would be yes, which no user of a speaker would bear.
func (a Annotations) Destroys() bool { return a.Destructive != nil && *a.Destructive }

// Tool is one thing that can be done, and all that sources and models say of it.
type Tool struct {
	Name        string          // as its source names it, dots and all
	Description string          //
	Schema      json.RawMessage // JSON Schema of its arguments, kept as it came; never empty
	Origin      Origin
	Kind        Kind // as declared; "" when the source declares none
	Annotations Annotations
	Source      string        // "device", "light", "iot", "local", "homeassistant", "external:NAME"
	Entry       string        // of an external server that has dialled in: the name of its token, which several may have
	Stream      string        // the group it is listed under outward
	Job         bool          // it takes long: the talk goes on, and its result is told when it is there
	Trusted     bool          // of an external server whose entry says so: it need not tell what it destroys
	Timeout     time.Duration // of one call, as its source says; 0: as usual
	Quotes      bool          // its results quote texts of strangers, which may tell the model to do something: they are kept for their turn alone, and nothing else is done in it
	NeedsDevice bool          // it works on a device or its conversation: called from outside it must be told which

	// When decides whether a tool of this server is offered beside these tools
	// of the device, so that the model does not see the same thing twice. nil:
	// always. It is called often and must not wait.
	When func(device []Tool) bool
}

// Size returns how much of [MaxToolList] the tool takes, in bytes.
func (t Tool) Size() int { return len(t.Name) + len(t.Description) + len(t.Schema) }

// UserOnly reports whether the tool is meant for people, not for the model
// (annotation audience ["user"], docs/protocol.md 5.3).
func (t Tool) UserOnly() bool {
	return len(t.Annotations.Audience) == 1 && t.Annotations.Audience[0] == "user"
}

// OfDevice reports whether the device itself runs the tool, in whatever dialect
// it offers it: such calls go to the device one at a time.
func (t Tool) OfDevice() bool {
	return t.Source == "device" || t.Source == "light" || t.Source == "iot"
}

// Call is a request of a model, or of a platform, to run a tool.
type Call struct {
	ID        string // the model's id of the call
	Name      string // LLMName of an offer
	Arguments string // JSON text; "" means {}
	Language  string // of the turn, in which a refusal is worded: in Chinese for Chinese, else in English
	By        Asker
	Person    bool // a person calls it, outside: tools that are meant for people are found by the name that their source gives them
}

// Asker says who makes a call.
type Asker int

// Who makes a call. One that is not the conversation's own waits for the device behind
// all those that are, and may equal one that is running.
const (
	ByModel   Asker = iota // the conversation's model
	ByTool                 // a tool that runs for the conversation, through its [Peer]
	ByOutside              // somebody outside, on a device in front of which a person can be asked
	ByProgram              // a program, with nobody who could be asked
)

// Outside reports whether it is not the conversation that calls.
func (a Asker) Outside() bool { return a == ByOutside || a == ByProgram }
