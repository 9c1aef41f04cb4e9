package record

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// Sources wraps the sources of a conversation's tools.
func (t *Tape) Sources(sources ...mcp.Source) []mcp.Source {
	if t == nil {
		return sources
	}
	out := make([]mcp.Source, 0, len(sources))
	for i, s := range sources {
		number := strconv.Itoa(i + 1)
		switch s := s.(type) {
		case nil:
		case mcp.Group:
			out = append(out, &tapedGroup{Group: s, tape: t, number: number, known: map[mcp.Source]*tapedSource{}})
		default:
			out = append(out, newTapedSource(t, s, number))
		}
	}
	return out
}

// tapedGroup is a group whose sources are recorded. A source that leaves is
// recorded as one that offers nothing.
type tapedGroup struct {
	mcp.Group
	tape   *Tape
	number string

	mu    sync.Mutex
	known map[mcp.Source]*tapedSource
	named int
}

// Sources are the group's sources now, wrapped.
func (g *tapedGroup) Sources() []mcp.Source {
	g.mu.Lock()
	defer g.mu.Unlock()
	here := map[mcp.Source]bool{}
	var out []mcp.Source
	for _, s := range g.Group.Sources() {
		here[s] = true
		if g.known[s] == nil {
			g.named++
			g.known[s] = newTapedSource(g.tape, s, g.number+"."+strconv.Itoa(g.named))
		}
		out = append(out, g.known[s])
	}
	for s, taped := range g.known {
		if !here[s] {
			taped.offers(nil)
			delete(g.known, s)
		}
	}
	return out
}

// tapedSource is a source that is recorded.
type tapedSource struct {
	mcp.Source
	tape   *Tape
	number string

	mu    sync.Mutex
	last  []byte          // what it offered last
	shown map[string]bool // by tool: what its When said last
}

func newTapedSource(t *Tape, s mcp.Source, number string) *tapedSource {
	return &tapedSource{Source: s, tape: t, number: number, shown: map[string]bool{}}
}

// GetAvailableTools records the tools where they have changed.
func (s *tapedSource) GetAvailableTools() []mcp.Tool {
	tools := s.Source.GetAvailableTools()
	s.offers(tools)
	for i := range tools {
		if when := tools[i].When; when != nil {
			name := tools[i].Name
			tools[i].When = func(device []mcp.Tool) bool { return s.show(name, when(device)) }
		}
	}
	return tools
}

func (s *tapedSource) offers(tools []mcp.Tool) {
	list := make([]Tool, len(tools))
	for i, tool := range tools {
		list[i] = Tool{Tool: tool, Schema: string(tool.Schema), Trusted: &tool.Trusted, Depends: tool.When != nil}
		list[i].Tool.When, list[i].Tool.Schema = nil, nil
	}
	now, err := json.Marshal(list)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && !bytes.Equal(now, s.last) {
		s.last = now
		s.tape.add(Entry{Tools: &Tools{Source: s.number, List: list}})
	}
}

// show records whether a tool is offered, where that has changed.
func (s *tapedSource) show(tool string, yes bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.shown[tool]; !ok || last != yes {
		s.shown[tool] = yes
		s.tape.add(Entry{Shown: &Shown{Source: s.number, Tool: tool, Yes: yes}})
	}
	return yes
}

// CallTool records a call.
func (s *tapedSource) CallTool(ctx context.Context, name string, arguments map[string]any) (result any, err error) {
	n := s.tape.count("call")
	args, bad := json.Marshal(arguments)
	if bad != nil {
		args = []byte("{}")
	}
	s.tape.add(Entry{Call: &Call{N: n, Step: Asked, Source: s.number, Tool: name, Arguments: args}})
	over := &Call{N: n, Step: Panicked}
	defer func() { s.tape.add(Entry{Call: over}) }()
	result, err = s.Source.CallTool(ctx, name, arguments)
	over = &Call{N: n, Step: Done, Result: valueOf(result)}
	if err != nil {
		over = &Call{N: n, Step: Failed, Fault: faultOf(ctx, err)}
	}
	return result, err
}

// look records what pictures show.
func (t *Tape) look(look router.Describe) router.Describe {
	return func(ctx context.Context, mime string, data []byte, question string) (string, error) {
		n := t.count("look")
		t.add(Entry{Look: &Look{N: n, Step: Asked}})
		text, err := look(ctx, mime, data, question)
		e := &Look{N: n, Step: Done, Text: text}
		if err != nil {
			e.Step, e.Fault = Failed, faultOf(ctx, err)
		}
		t.add(Entry{Look: e})
		return text, err
	}
}
