package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/external/library"
)

// calls owns what the present connection brings: the tools that can be called,
// and the calls that end with it. All methods may be called at the same time.
type calls struct {
	mu      sync.Mutex
	ended   bool             // for good
	live    *session         // nil while not connected
	tools   []mcp.Tool       // not changed
	library *library.Library // beside the tools; nil: not read
	reading []mcp.Tool       // those of the tools that read it
	read    bool             // the list was read, over this connection
	running map[uint64]context.CancelCauseFunc
	number  uint64 // of the last call
	torn    bool   // calls were cancelled because the connection ends
}

// open makes live the present connection; false: all has ended.
func (c *calls) open(live *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.live, c.torn = live, false
	return true
}

// keep makes what was listed the known tools, with those that read the library beside them, unless the connection that they
// are from has ended.
func (c *calls) keep(live *session, listed, reading []mcp.Tool, l *library.Library) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && c.live == live {
		c.tools, c.reading, c.library, c.read = slices.Concat(listed, reading), reading, l, true
	}
}

// forget drops the list; false: all has ended.
func (c *calls) forget() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.tools, c.reading, c.library, c.read = nil, nil, nil, false
	}
	return !c.ended
}

// drop takes the tools away and fails the calls that are running. It reports
// whether there were such calls since the connection was opened.
func (c *calls) drop() (torn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.tools, c.reading, c.library, c.read = nil, nil, nil, nil, false
	c.torn = c.torn || len(c.running) > 0
	for _, cancel := range c.running {
		cancel(mcp.ErrClosed)
	}
	return c.torn
}

// end is drop for good.
func (c *calls) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.drop()
}

// present returns the connection whose list was read; nil: there is none.
func (c *calls) present() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read {
		return nil
	}
	return c.live
}

// list returns the tools, which must not be changed, and whether they were read
// over the present connection.
func (c *calls) list() (tools []mcp.Tool, read bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools, c.read
}

// beside returns what there is beside the tools, and the connection that it was read over; nil: there is none.
func (c *calls) beside() (*library.Library, *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.library, c.live
}

// reads returns the library that a tool reads; nil: the server runs it.
func (c *calls) reads(name string) *library.Library {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !has(c.reading, name) {
		return nil
	}
	return c.library
}

// has reports whether a tool is among those of a list.
func has(tools []mcp.Tool, name string) bool {
	return slices.ContainsFunc(tools, func(t mcp.Tool) bool { return t.Name == name })
}

// begin notes a call, so that it ends when the server leaves.
func (c *calls) begin(name string, cancel context.CancelCauseFunc) (*session, uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, 0, mcp.ErrClosed
	}
	if c.live == nil || !has(c.tools, name) {
		return nil, 0, mcp.ErrNoTool
	}
	return c.note(cancel)
}

// enter notes a request that is no call of a tool, so that it ends when the server leaves.
func (c *calls) enter(cancel context.CancelCauseFunc) (*session, uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.live == nil {
		return nil, 0, mcp.ErrClosed
	}
	return c.note(cancel)
}

// note notes a request over the present connection. c.mu is held.
func (c *calls) note(cancel context.CancelCauseFunc) (*session, uint64, error) {
	c.number++
	c.running[c.number] = cancel
	return c.live, c.number, nil
}

// busy reports whether there are calls that run.
func (c *calls) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running) > 0
}

// finish forgets a call that has ended.
func (c *calls) finish(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, number)
}

// CallTool runs a tool and waits for its result as long as ctx allows or, where that has no
// deadline, the config's timeout. The result is text, an mcp.Image, a []any of both, or any JSON
// value. It is sent once; with Config.Defaults a server of 2026-07-28 may have it
// continued up to ten times, each with an answer to what it asked. Errors: mcp.ErrNoTool, also while the server is
// away; mcp.ErrClosed when it left meanwhile; a *mcp.ToolError for what it
// reports; those of ctx.
func (s *Server) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if _, bounded := ctx.Deadline(); !bounded {
		var stop context.CancelFunc
		own, stop = context.WithTimeout(own, cmp.Or(s.config.Timeout, defaultTimeout))
		defer stop()
	}
	live, number, err := s.calls.begin(name, cancel)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	defer s.calls.finish(number)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	if arguments == nil {
		arguments = map[string]any{}
	}
	if l := s.calls.reads(name); l != nil {
		result, err := l.Call(own, live, s.name, name, arguments)
		if _, mistake := errors.AsType[*mcp.ToolError](err); err != nil && !mistake {
			err = s.callError(ctx, own, live, name, err)
		}
		return result, err
	}
	params := &sdk.CallToolParams{Name: name, Arguments: arguments}
	if heard := mcp.ProgressFrom(ctx); heard != nil {
		token, stop := s.hearers.add(heard)
		defer stop()
		params.SetProgressToken(token)
	}
	result, err := live.CallTool(own, params)
	if err != nil {
		return nil, s.callError(ctx, own, live, name, err)
	}
	if result.NeedsInput() {
		return nil, errQuestion
	}
	if result.IsError {
		return nil, &mcp.ToolError{Message: textOf(result)}
	}
	return resultOf(result), nil
}

// callError tells the causes of a failed call apart. own is the call's context, ctx
// its caller's.
func (s *Server) callError(ctx, own context.Context, live *session, name string, err error) error {
	if cause := context.Cause(own); errors.Is(cause, mcp.ErrClosed) {
		return s.left(name)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("call %s: %w", name, ctx.Err())
	}
	if own.Err() != nil {
		return fmt.Errorf("call %s: mcp server %s gave no answer in %v: %w", name, s.name, cmp.Or(s.config.Timeout, defaultTimeout), own.Err())
	}
	if errors.Is(err, io.EOF) || live.over() {
		return s.left(name)
	}
	if errors.Is(err, sdk.ErrConnectionClosed) {
		_, message, _ := strings.Cut(err.Error(), `calling "tools/call": `)
		if strings.HasPrefix(message, "client is closing") || strings.HasPrefix(message, "server is closing") {
			return s.left(name)
		}
		// The server reported an error with a code that the SDK keeps for itself.
		return &mcp.ToolError{Message: message}
	}
	if reported, ok := errors.AsType[*jsonrpc.Error](err); ok && !unsent(err) {
		return &mcp.ToolError{Code: reported.Code, Message: reported.Message}
	}
	return fmt.Errorf("call %s: mcp server %s: %s", name, s.name, s.mask.err(err))
}

// left is the error of a call whose server went away.
func (s *Server) left(name string) error {
	return fmt.Errorf("call %s: mcp server %s has left: %w", name, s.name, mcp.ErrClosed)
}

// over reports whether the connection has ended.
func (s *session) over() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// resultOf is a tool's result as CallTool returns it: text, one Image, a []any
// of both in the server's order, or any JSON value where there is only that.
func resultOf(r *sdk.CallToolResult) any {
	if len(r.Content) == 0 && r.StructuredContent != nil {
		return r.StructuredContent
	}
	var blocks []any
	images := false
	for _, content := range r.Content {
		if block := blockOf(content); block != nil {
			_, image := block.(mcp.Image)
			images = images || image
			blocks = append(blocks, block)
		}
	}
	switch {
	case !images:
		return textOf(r)
	case len(blocks) == 1:
		return blocks[0]
	}
	return blocks
}

// blockOf is one block as a string or an Image; nil for what says nothing.
func blockOf(content sdk.Content) any {
	switch c := content.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return mcp.Image{MIMEType: c.MIMEType, Data: c.Data}
	case *sdk.AudioContent:
		return fmt.Sprintf("[%s sound, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return strings.TrimSpace(c.Name + " " + c.URI)
	case *sdk.EmbeddedResource:
		return library.Content(c.Resource)
	}
	return nil
}

// textOf joins the texts of a result, each on lines of its own.
func textOf(r *sdk.CallToolResult) string {
	var out []string
	for _, content := range r.Content {
		if text, ok := blockOf(content).(string); ok {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}
