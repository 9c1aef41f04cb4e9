// Package local holds the tools that this server runs itself. What there is, is
// listed in registry.go; each tool's handler stands in a file of its own.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"xiaozhi/mcp"
)

// Handler runs a tool. arguments are valid against the tool's schema. ctx ends
// when the call is given up, late, or the source stops; mcp.InfoFrom(ctx) tells
// the turn's language and zone. Handlers run at the same time and must heed ctx.
type Handler func(ctx context.Context, arguments map[string]any) mcp.ActionResponse

// Options of a Source. The zero value works.
type Options struct {
	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: discarded

	Roles   []string // the roles that can be changed to; empty: change_role is not offered
	World   World
	Music   *Music  // nil: music is not offered
	Streams Streams // nil: there are no stations
	URLs    bool    // a model may have addresses played that it knows
	Memory  bool    // something can be remembered for good
	Quiet   bool    // devices can be switched to quiet

	Documents Documents // nil: nothing can be looked up in documents

	Voices   func() bool // whether voices can be learned now; it does not wait. nil: never
	Routines bool        // things can be done at times
}

// Source is the server's own tools, as an mcp.Source. One serves all devices.
// It has no goroutines. All methods may be called at the same time.
type Source struct {
	o Options

	mu       sync.Mutex
	started  bool
	ended    bool
	tools    []mcp.Tool
	handlers map[string]Handler
	calls    map[uint64]context.CancelCauseFunc // running, by number
	number   uint64                             // of the last call
}

// New makes a source with the tools of registry.go.
func New(o Options) *Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Source{o: o, handlers: make(map[string]Handler), calls: make(map[uint64]context.CancelCauseFunc)}
	all := definitions()
	for _, e := range registry(o) {
		s.add(e.tool(all[e.name]), e.handler)
	}
	return s
}

// Names lists the tools that this server may run itself, sorted, whether or not the settings offer them.
func Names() []string { return slices.Sorted(maps.Keys(definitions())) }

// definitions returns those of the embedded file, which nobody changes.
var definitions = sync.OnceValue(func() (all map[string]definition) {
	if err := json.Unmarshal(toolsFile, &all); err != nil {
		panic(fmt.Sprintf("the embedded tools.json: %v", err))
	}
	return all
})

// SetRoles says which roles there are from now on; without any, change_role is not
// offered. It may be called at any time.
func (s *Source) SetRoles(names []string) {
	e := changesRole(roles(slices.Clone(names)))
	tool := e.tool(definitions()[e.name])
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.off {
		s.add(tool, e.handler)
		return
	}
	delete(s.handlers, e.name)
	s.tools = slices.DeleteFunc(s.tools, func(t mcp.Tool) bool { return t.Name == e.name })
}

// SetWorld says which services of the world are asked from now on; a tool without one is not offered. It may be called at any time.
func (s *Source) SetWorld(w World) {
	o, all := s.o, definitions()
	o.World = w
	now := registry(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range worldTools() {
		if i := slices.IndexFunc(now, func(e entry) bool { return e.name == name }); i >= 0 {
			s.add(now[i].tool(all[name]), now[i].handler)
			continue
		}
		delete(s.handlers, name)
		s.tools = slices.DeleteFunc(s.tools, func(t mcp.Tool) bool { return t.Name == name })
	}
}

// AddTool adds a tool, or replaces the one of that name. It may be called at any time.
func (s *Source) AddTool(tool mcp.Tool, handler Handler) error {
	if tool.Name == "" {
		return errors.New("add local tool: it has no name")
	}
	if handler == nil {
		return fmt.Errorf("add local tool %s: it has no handler", tool.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(tool, handler)
	return nil
}

// add puts a tool into the list. The caller holds mu, or is New.
func (s *Source) add(tool mcp.Tool, handler Handler) {
	if len(tool.Schema) == 0 {
		tool.Schema = []byte(noArguments)
	}
	tool.Origin, tool.Source = mcp.Local, "local"
	s.handlers[tool.Name] = handler
	if i := slices.IndexFunc(s.tools, func(t mcp.Tool) bool { return t.Name == tool.Name }); i >= 0 {
		s.tools[i] = tool
		return
	}
	s.tools = append(s.tools, tool)
}

// RegisterTools adds tools with their handlers by name. A tool
// without a handler, or a handler without a tool, is an error and nothing is added.
func (s *Source) RegisterTools(tools []mcp.Tool, handlers map[string]Handler) error {
	for _, tool := range tools {
		if handlers[tool.Name] == nil {
			return fmt.Errorf("register local tools: %q has no handler", tool.Name)
		}
	}
	for name := range handlers {
		if !slices.ContainsFunc(tools, func(t mcp.Tool) bool { return t.Name == name }) {
			return fmt.Errorf("register local tools: handler %q has no tool", name)
		}
	}
	for _, tool := range tools {
		if err := s.AddTool(tool, handlers[tool.Name]); err != nil {
			return err
		}
	}
	return nil
}

// Start makes the tools available.
func (s *Source) Start(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return fmt.Errorf("start local tools: %w", mcp.ErrClosed)
	}
	s.started = true
	return nil
}

// Stop takes the tools away and ends the calls that are running.
func (s *Source) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.started = true, false
	for _, cancel := range s.calls {
		cancel(mcp.ErrClosed)
	}
	return nil
}

// HasTool reports whether the tool is there.
func (s *Source) HasTool(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started && s.handlers[name] != nil
}

// GetAvailableTools lists the tools in the order in which they were added.
func (s *Source) GetAvailableTools() []mcp.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		return nil
	}
	return slices.Clone(s.tools)
}

// IsReady reports whether the source is started.
func (s *Source) IsReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// ResetConnection does nothing while the source runs: there is no connection.
func (s *Source) ResetConnection() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return fmt.Errorf("reset local tools: %w", mcp.ErrClosed)
	}
	return nil
}

// CallTool runs a tool; the result is an mcp.ActionResponse. It returns when
// the handler does.
func (s *Source) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	handler, number, err := s.begin(name, cancel)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	defer s.finish(number)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	response := handler(ctx, arguments)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("call %s: %w", name, context.Cause(ctx))
	}
	return response, nil
}

// begin notes a call so that Stop can end it.
func (s *Source) begin(name string, cancel context.CancelCauseFunc) (Handler, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, 0, mcp.ErrClosed
	}
	handler := s.handlers[name]
	if !s.started || handler == nil {
		return nil, 0, mcp.ErrNoTool
	}
	s.number++
	s.calls[s.number] = cancel
	return handler, s.number, nil
}

func (s *Source) finish(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, number)
}
