package app

import (
	"context"
	"errors"
	"slices"
	"testing"

	"xiaozhi/mcp"
)

// fleetOf is a set of servers for the test of what is passed on.
type fleetOf struct {
	mcp.Group
	servers []mcp.Source
}

func (f fleetOf) Sources() []mcp.Source { return f.servers }

func (f fleetOf) GetAvailableTools() (all []mcp.Tool) {
	for _, s := range f.servers {
		all = append(all, s.GetAvailableTools()...)
	}
	return all
}

// shelfOf is one server; a call answers with what it is.
type shelfOf struct {
	mcp.Source
	tools []mcp.Tool
}

func (s *shelfOf) GetAvailableTools() []mcp.Tool { return slices.Clone(s.tools) }

func (s *shelfOf) CallTool(_ context.Context, name string, _ map[string]any) (any, error) {
	return s.tools[0].Source + " " + name, nil
}

// TestPassedOn: pass_on chooses by server, or by source and tool, and a call goes to the tool that the gate was asked
// about: not to one that has come in its place since.
func TestPassedOn(t *testing.T) {
	find, lose := mcp.Tool{Name: "Find/Way", Source: "external:Maps", Trusted: true}, mcp.Tool{Name: "lose", Source: "external:Maps"}
	server := &shelfOf{tools: []mcp.Tool{find, lose}}
	fleet := fleetOf{servers: []mcp.Source{&shelfOf{tools: []mcp.Tool{{Name: "maps", Source: "external:shop"}}}, server}}
	for pattern, want := range map[string][]string{
		"maps": {"Find/Way", "lose"}, "M*": {"Find/Way", "lose"}, "external:maps/*": {"Find/Way", "lose"}, "external:maps/find_way": {"Find/Way"}, "external:*/fi*": {"Find/Way"},
		"*": {"maps", "Find/Way", "lose"}, "lose": nil, "local/*": nil,
	} {
		var got []string
		for _, t := range (sharedTools{fleet, []string{pattern}}).list() {
			got = append(got, t.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", pattern, got)
		}
	}
	shared := sharedTools{fleet, []string{"*"}}
	if got, err := shared.call(t.Context(), find, nil); err != nil || got != "external:Maps Find/Way" {
		t.Errorf("%v, %v", got, err)
	}
	yes := true
	for what, now := range map[string]mcp.Tool{
		"no longer trusted": {Name: find.Name, Source: find.Source}, "another server": {Name: find.Name, Source: "external:other", Trusted: true},
		"it destroys": {Name: find.Name, Source: find.Source, Trusted: true, Annotations: mcp.Annotations{Destructive: &yes}}, "gone": lose,
	} {
		server.tools = []mcp.Tool{now}
		if got, err := shared.call(t.Context(), find, nil); !errors.Is(err, mcp.ErrNoTool) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}
