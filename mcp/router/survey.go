package router

import (
	"slices"

	"xiaozhi/mcp"
)

// Listed is a tool with all that is decided about it, whether or not the model is offered it.
type Listed struct {
	Offer
	Asks   string // why the user must say yes first: a setting and its pattern, or a hint of the tool; "": nobody is asked
	Hidden string // why the model is not offered it: a setting and its pattern, or one of the constants below; "": it is
}

// Why tools are hidden that no setting hides.
const (
	ForPeople = "people" // it is meant for people, who may call it all the same
	Replaced  = "device" // the device has a tool of its own that does the same
)

// Survey returns all tools of all sources, in the order of their sources. Those that are hidden have no LLMName. The caller
// owns the slice.
func (rt *Router) Survey() []Listed {
	type id struct{ source, name string }
	var all []Listed
	there := map[id]bool{}
	for _, p := range rt.placed() {
		there[id{p.Tool.Source, p.Tool.Name}] = true
		l := Listed{Offer: p.Offer}
		if verdict := rt.decide(p.Offer, Case{By: mcp.ByModel}); verdict.Decision == Asks {
			l.Asks = verdict.Why
		}
		all = append(all, l)
	}
	for _, s := range rt.flat() {
		for _, tool := range s.GetAvailableTools() {
			if tool.Name == "" || there[id{tool.Source, tool.Name}] {
				continue
			}
			there[id{tool.Source, tool.Name}] = true
			all = append(all, rt.hidden(tool))
		}
	}
	slices.SortStableFunc(all, func(a, b Listed) int { return rank(a.Tool) - rank(b.Tool) })
	return all
}

// hidden describes a tool that the model is not offered.
func (rt *Router) hidden(tool mcp.Tool) Listed {
	l := Listed{Offer: Offer{Tool: tool}, Hidden: Replaced}
	l.Kind, l.Why = mcp.ExplainKind(tool, rt.limits.Load().Kinds)
	_, job := mcp.FitsTool(rt.limits.Load().Jobs, tool, mcp.FunctionName(tool.Name))
	l.Job = tool.Job || job
	l.Limit = rt.limits.Load().Times.limitOf(l.Offer)
	names := []string{mcp.FunctionName(tool.Name)}
	l.Asks, _, l.Consent = rt.limits.Load().gate.asks(tool, names)
	why, denied := rt.limits.Load().gate.hides(tool, names)
	if narrow := rt.narrow.Load(); !denied && narrow != nil {
		why, denied = narrow.hides(tool, names)
	}
	switch {
	case denied:
		l.Hidden = why
	case tool.UserOnly():
		l.Hidden = ForPeople
	}
	return l
}

// forPeople returns the tool that is meant for people and that one of them calls. ok is false where there is none.
func (rt *Router) forPeople(call mcp.Call) (o placedOffer, ok bool) {
	if !call.Person || !call.By.Outside() {
		return o, false
	}
	for _, s := range rt.flat() {
		for _, tool := range s.GetAvailableTools() {
			if tool.UserOnly() && tool.Name == call.Name {
				l := rt.hidden(tool)
				l.LLMName = mcp.FunctionName(tool.Name)
				return placedOffer{Offer: l.Offer, source: s}, true
			}
		}
	}
	return o, false
}

// flat lists the sources, those of groups one by one.
func (rt *Router) flat() []mcp.Source {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	sources := make([]mcp.Source, 0, len(rt.sources))
	for _, s := range rt.sources {
		if group, ok := s.(mcp.Group); ok {
			sources = append(sources, group.Sources()...)
		} else {
			sources = append(sources, s)
		}
	}
	return sources
}
