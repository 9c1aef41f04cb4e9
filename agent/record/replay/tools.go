package replay

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"xiaozhi/agent/record"
	"xiaozhi/mcp"
)

// offers is a source of tools again.
type offers struct {
	*player
	number string
	lists  []step[record.Tools]
	shown  []step[record.Shown]
}

// source is the source of that number.
func (p *player) source(number string) *offers {
	s := p.offer[number]
	if s == nil {
		s = &offers{player: p, number: number}
		p.offer[number] = s
		p.order = append(p.order, number)
	}
	return s
}

// sources are all sources, in their order.
func (p *player) sources() []mcp.Source {
	slices.Sort(p.order)
	out := make([]mcp.Source, len(p.order))
	for i, number := range p.order {
		out[i] = p.offer[number]
	}
	return out
}

// Start does nothing.
func (s *offers) Start(context.Context) error { return nil }

// Stop does nothing.
func (s *offers) Stop() error { return nil }

// IsReady is always true.
func (s *offers) IsReady() bool { return true }

// ResetConnection does nothing.
func (s *offers) ResetConnection() error { return nil }

// HasTool reports whether the tool is there now.
func (s *offers) HasTool(name string) bool {
	return slices.ContainsFunc(s.GetAvailableTools(), func(t mcp.Tool) bool { return t.Name == name })
}

// GetAvailableTools are the tools that were there at this time.
func (s *offers) GetAvailableTools() []mcp.Tool {
	at, ok := latest(s.lists, s.now()+s.o.Within)
	if !ok {
		return nil
	}
	out := make([]mcp.Tool, len(at.List))
	for i, t := range at.List {
		out[i] = t.Tool
		out[i].Schema, out[i].Trusted = json.RawMessage(t.Schema), t.Trusted == nil || *t.Trusted
		if t.Depends {
			name := t.Name
			out[i].When = func([]mcp.Tool) bool { return s.shows(name) }
		}
	}
	return out
}

func (s *offers) shows(tool string) bool {
	now := s.now() + s.o.Within
	yes := true
	for _, st := range s.shown {
		if st.v.Tool == tool && st.at <= now {
			yes = st.v.Yes
		}
	}
	return yes
}

// latest is the last of those that were at a time.
func latest[T any](steps []step[T], now time.Duration) (v T, ok bool) {
	for _, st := range steps {
		if st.at <= now {
			v, ok = st.v, true
		}
	}
	return v, ok
}

// CallTool gives what the call gave, when it gave it.
func (s *offers) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	c := s.calls.find(s.number, name, arguments)
	if c == nil {
		return nil, errMore
	}
	now := s.now()
	if c.over == nil { // the recording ended before it did
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := s.due(ctx, now, c.asked.at, c.over.at, c.over.v.Step, c.over.v.Fault); err != nil {
		return nil, err
	}
	return c.over.v.Result.Any(), nil
}

// calls are the recorded calls of all tools.
type calls struct {
	mu  sync.Mutex
	all []*call
}

type call struct {
	asked step[record.Call]
	over  *step[record.Call]
	used  bool
}

func (c *calls) add(at time.Duration, v record.Call) {
	if v.Step == record.Asked {
		c.all = append(c.all, &call{asked: step[record.Call]{at, v}})
		return
	}
	for _, known := range c.all {
		if known.asked.v.N == v.N {
			known.over = &step[record.Call]{at, v}
		}
	}
}

// find uses up the first call like this; with other arguments, if there is none.
func (c *calls) find(source, tool string, arguments map[string]any) *call {
	args, err := json.Marshal(arguments)
	if err != nil {
		args = []byte("{}")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, exact := range []bool{true, false} {
		for _, known := range c.all {
			v := known.asked.v
			if !known.used && v.Source == source && v.Tool == tool && (!exact || string(v.Arguments) == string(args)) {
				known.used = true
				return known
			}
		}
	}
	return nil
}

// look says what a picture showed.
func (p *player) look(ctx context.Context, _ string, _ []byte, _ string) (string, error) {
	steps := p.looks.next()
	if len(steps) == 0 {
		return "", errMore
	}
	if len(steps) == 1 {
		<-ctx.Done()
		return "", ctx.Err()
	}
	if err := p.due(ctx, p.now(), steps[0].at, steps[1].at, steps[1].v.Step, steps[1].v.Fault); err != nil {
		return "", err
	}
	return steps[1].v.Text, nil
}
