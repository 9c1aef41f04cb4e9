package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/schema"
)

// Tool is one thing that others can do. Add one with [Registry.Add]. One of Run,
// Do and Handle is set.
type Tool struct {
	Stream      string          // the group; "": none, it is listed under its bare name
	Name        string          // 1 to 128 letters, digits, "_", "-", "." together with the stream
	Description string          // what it does, for a model
	Schema      json.RawMessage // JSON Schema of its arguments, of type object; nil: no arguments
	Annotations mcp.Annotations // hints; ReadOnly lets tokens that are read-only call it
	Timeout     time.Duration   // of one call; 0: 60 s
	Foreign     bool            // others run it: what its annotations say is shown, and not believed
	Source      string          // where it runs, as [mcp.Tool] has it; "": this gateway
	Entry       string          // of an external server, as [mcp.Tool] has it
	Trusted     bool            // the same
	Routed      bool            // it passes the gate of a device's router, which can ask its user
	Says        bool            // it speaks from a device, or listens there

	// Run does it. arguments are valid against Schema. The result is text, an
	// [mcp.Image], a []any of both, an [mcp.ActionResponse], or anything that JSON
	// can hold; one that says {"success":false} is a failure, as an error is.
	// It may be called at the same time.
	Run func(ctx context.Context, arguments map[string]any) (any, error)
	// Do does it with the arguments as they were sent, which it checks itself. It
	// may be called at the same time.
	Do func(ctx context.Context, c Call) Outcome
	// Handle does it with the whole protocol at hand: arguments come as they were
	// sent. It is for calls over MCP only.
	Handle sdk.ToolHandler
}

const noArguments = `{"type":"object","properties":{},"required":[]}`

// Entry is a tool in its place. It does not change.
type Entry struct {
	place
	def    *sdk.Tool // as it is listed
	schema json.RawMessage
	own    bool     // this server runs it itself, so its annotations hold
	tool   mcp.Tool // as the gate sees it
	routed bool     // the gate is asked by what runs it
	says   bool     // as in Tool
	limit  time.Duration
	do     func(ctx context.Context, c Call) Outcome // nil: handle
	handle sdk.ToolHandler
}

// Name returns the full name, stream.name.
func (e *Entry) Name() string { return e.name }

// Stream returns the stream; "" if it is in none.
func (e *Entry) Stream() string { return e.stream }

// Description returns what the tool does.
func (e *Entry) Description() string { return e.def.Description }

// Schema returns the JSON Schema of the arguments.
func (e *Entry) Schema() json.RawMessage { return e.schema }

func (e *Entry) withdraw(s *sdk.Server) { s.RemoveTools(e.name) }

func (e *Entry) offer(v *View) {
	defer func() {
		if p := recover(); p != nil { // refused has not foreseen it
			v.log.Error("tool cannot be offered", "tool", e.name, "why", fmt.Sprint(p))
		}
	}()
	v.server.AddTool(e.def, v.call)
}

// same compares what the gate goes by as well: what is trusted no longer must not stay.
func (e *Entry) same(other item) bool {
	o, ok := other.(*Entry)
	return ok && (e == o || e.def.Description == o.def.Description && string(e.schema) == string(o.schema) &&
		e.routed == o.routed && e.limit == o.limit && e.tool.Source == o.tool.Source && e.tool.Entry == o.tool.Entry && e.tool.Trusted == o.tool.Trusted &&
		reflect.DeepEqual(e.tool.Annotations, o.tool.Annotations))
}

// names returns what the tool is called beside its own name.
func (e *Entry) names() []string {
	return []string{e.name, mcp.FunctionName(e.name), mcp.FunctionName(e.tool.Name)}
}

// readOnly reports whether the tool is known to change nothing.
func (e *Entry) readOnly() bool {
	return e.own && e.def.Annotations.ReadOnlyHint
}

// entry returns the tool in its place.
func (t Tool) entry() (*Entry, error) {
	if PlainStream(t.Stream) != t.Stream {
		return nil, fmt.Errorf("stream name %q may hold letters, digits, _ and - only", t.Stream)
	}
	e := &Entry{
		place: place{key{kindTool, JoinName(t.Stream, t.Name)}, t.Stream}, schema: t.Schema,
		own: !t.Foreign, limit: t.Timeout, do: t.Do, handle: t.Handle, routed: t.Routed, says: t.Says,
		tool: mcp.Tool{Name: t.Name, Source: cmp.Or(t.Source, mcp.SourceGateway), Entry: t.Entry, Annotations: t.Annotations, Trusted: t.Trusted},
	}
	if err := CheckName(e.name); err != nil {
		return nil, err
	}
	if len(e.schema) == 0 {
		e.schema = json.RawMessage(noArguments)
	}
	if err := CheckSchema(e.schema); err != nil {
		return nil, fmt.Errorf("tool %s: %w", e.name, err)
	}
	ways := 0
	for _, set := range []bool{t.Run != nil, t.Do != nil, t.Handle != nil} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		return nil, errors.New(e.name + " needs one of Run, Do and Handle")
	}
	if t.Run != nil {
		compiled, err := schema.Compile(e.schema)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", e.name, err)
		}
		e.do = Checked(compiled, t.Run)
	}
	hints := &sdk.ToolAnnotations{DestructiveHint: t.Annotations.Destructive}
	if is := t.Annotations.ReadOnly; is != nil {
		hints.ReadOnlyHint = *is
	}
	if is := t.Annotations.Idempotent; is != nil {
		hints.IdempotentHint = *is
	}
	e.def = &sdk.Tool{Name: e.name, Description: t.Description, InputSchema: e.schema, Annotations: hints}
	return e, e.refused()
}

// refused returns why a server of the SDK does not take the tool, at which it panics:
// its schema, which [CheckSchema] has seen, marks arguments as headers that HTTP does
// not allow. Only schemas that may hold the mark, escaped or not, are tried out: that
// takes 0.1 ms and 76 KB, and the tools of other servers are read every second.
func (e *Entry) refused() (err error) {
	if !bytes.Contains(e.schema, []byte("x-mcp-header")) && !bytes.Contains(e.schema, []byte(`\u`)) {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	sdk.NewServer(&sdk.Implementation{Name: "check"}, &sdk.ServerOptions{Logger: slog.New(slog.DiscardHandler)}).AddTool(e.def, e.handle)
	return nil
}

// CheckSchema returns what is wrong with a schema: the SDK would panic at it.
func CheckSchema(schema json.RawMessage) error {
	var fields map[string]any // all of it is read: a number may be too large
	if err := json.Unmarshal(schema, &fields); err != nil || fields == nil {
		return errors.New("its schema is no JSON object")
	}
	if fields["type"] != "object" {
		return errors.New(`its schema must have "type":"object"`)
	}
	if rawjson.Depth(schema) > MaxDepth {
		return fmt.Errorf("its schema nests deeper than %d levels", MaxDepth)
	}
	return nil
}

// MaxDepth bounds the nesting of objects and arrays in what clients send.
const MaxDepth = 64
