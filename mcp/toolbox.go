package mcp

import (
	"context"
	"log/slog"
	"time"
)

// Offer is a tool as the router offers it.
type Offer struct {
	Tool    Tool
	LLMName string // [A-Za-z0-9_-]{1,64}, unique in the toolbox, reversible
	Kind    Kind   // decided: never ""
}

// Call is what a model (or a platform) wants done.
type Call struct {
	ID        string // the model's id of the call
	Name      string // LLMName of an offer
	Arguments string // JSON text; "" means {}
}

// Prepared is a call that was looked up and checked, ready to be run once.
type Prepared struct {
	Call      Call
	Offer     Offer
	Arguments map[string]any // coerced to the schema, valid against it
	source    Source
}

// ToolboxOptions set limits. The zero value works.
type ToolboxOptions struct {
	Kinds       map[string]Kind // overrides, tool name patterns (path.Match) to kind
	Deny        []string        // tool name patterns that are not offered at all
	CallTimeout time.Duration   // from the sending of a call; 0 means 15 s
	SlowTimeout time.Duration   // of camera and screen pictures; 0 means 60 s
	MaxResult   int             // bytes of result text for the model; 0 means 16 KiB
	Queue       int             // calls waiting per device; 0 means 16; full: refused
	Log         *slog.Logger    // nil: discarded
}

var _ = context.Canceled
