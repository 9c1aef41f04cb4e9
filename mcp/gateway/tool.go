package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// Tool is one thing that others can do. Add one with Registry.Add.
type Tool struct {
	Stream      string          // the group; "": none, it is listed under its bare name
	Name        string          // 1 to 128 letters, digits, "_", "-", "." together with the stream
	Description string          // what it does, for a model
	Schema      json.RawMessage // JSON Schema of its arguments, of type object; nil: no arguments
	Annotations mcp.Annotations // hints; ReadOnly lets tokens that are read-only call it
	Timeout     time.Duration   // of one call; 0: 60 s

	// Run does it. arguments are valid against Schema. The result is text, an
	// mcp.Image, a []any of both, an mcp.ActionResponse, or anything that JSON
	// can hold; one that says {"success":false} is a failure, as an error is.
	// ClientFrom(ctx) is who asked. It may be called at the same time.
	Run func(ctx context.Context, arguments map[string]any) (any, error)
	// Handle does it with the whole protocol at hand, instead of Run: arguments
	// come as they were sent. It is for calls over MCP only.
	Handle sdk.ToolHandler
}

// maxToolName is how long a name may be, with its stream (MCP 2025-11-25).
const maxToolName = 128

// noArguments is the schema of a tool that takes none.
const noArguments = `{"type":"object","properties":{},"required":[]}`

// entry is a tool in its place.
type entry struct {
	name   string // full
	stream string
	bare   string
	def    *sdk.Tool // as it is listed; nobody changes it
	schema json.RawMessage
	ours   bool // this server runs it itself, so what it says of itself holds
	limit  time.Duration
	run    func(ctx context.Context, c call) outcome // nil: handle
	handle sdk.ToolHandler
}

func (e *entry) in() string { return e.stream }

// same reports whether two entries look the same from outside.
func (e *entry) same(other *entry) bool {
	return e.def.Description == other.def.Description && string(e.schema) == string(other.schema) &&
		sameHints(e.def.Annotations, other.def.Annotations)
}

func sameHints(a, b *sdk.ToolAnnotations) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ReadOnlyHint == b.ReadOnlyHint && a.IdempotentHint == b.IdempotentHint &&
		(a.DestructiveHint == nil) == (b.DestructiveHint == nil) && (a.DestructiveHint == nil || *a.DestructiveHint == *b.DestructiveHint)
}

// readOnly reports whether it is known to change nothing.
func (e *entry) readOnly() bool {
	return e.ours && e.def.Annotations != nil && e.def.Annotations.ReadOnlyHint
}

// newEntry places a tool. run and handle are the caller's to set.
func newEntry(stream, bare, description string, schema json.RawMessage, hints mcp.Annotations) (*entry, error) {
	if err := checkStream(stream); err != nil {
		return nil, err
	}
	name := joinName(stream, bare)
	if err := checkName(name); err != nil {
		return nil, err
	}
	if len(schema) == 0 {
		schema = json.RawMessage(noArguments)
	}
	if err := checkSchema(schema); err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	def := &sdk.Tool{Name: name, Description: description, InputSchema: schema, Annotations: &sdk.ToolAnnotations{DestructiveHint: hints.Destructive}}
	if hints.ReadOnly != nil {
		def.Annotations.ReadOnlyHint = *hints.ReadOnly
	}
	if hints.Idempotent != nil {
		def.Annotations.IdempotentHint = *hints.Idempotent
	}
	return &entry{name: name, stream: stream, bare: bare, def: def, schema: schema}, nil
}

// joinName is a tool's full name.
func joinName(stream, bare string) string {
	if stream == "" {
		return bare
	}
	return stream + "." + bare
}

// checkName says what is wrong with a tool's full name (MCP 2025-11-25).
func checkName(name string) error {
	if name == "" || len(name) > maxToolName {
		return fmt.Errorf("tool name %.40q… must have 1 to %d characters", name, maxToolName)
	}
	for _, r := range name {
		if !plainRune(r) && r != '.' {
			return fmt.Errorf("tool name %q may hold letters, digits, _, - and . only", name)
		}
	}
	return nil
}

// checkStream says what is wrong with the name of a stream; "" is none.
func checkStream(stream string) error {
	for _, r := range stream {
		if !plainRune(r) {
			return fmt.Errorf("stream name %q may hold letters, digits, _ and - only", stream)
		}
	}
	return nil
}

func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// checkSchema refuses what the SDK would panic at.
func checkSchema(schema json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(schema, &fields); err != nil || fields == nil {
		return errors.New("its schema is no JSON object")
	}
	if string(fields["type"]) != `"object"` {
		return errors.New(`its schema must have "type":"object"`)
	}
	if rawjson.Depth(schema) > maxDepth {
		return fmt.Errorf("its schema nests deeper than %d levels", maxDepth)
	}
	return nil
}

// StreamOf is the stream of a device: device-<id>, the Device-Id in lower case,
// a MAC without its separators, other signs as "-" (design.md section 10).
func StreamOf(deviceID string) string {
	id := strings.ToLower(deviceID)
	if hex := strings.NewReplacer(":", "", "-", "").Replace(id); len(hex) == 12 && strings.Trim(hex, "0123456789abcdef") == "" {
		id = hex
	}
	return "device-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, id)
}
