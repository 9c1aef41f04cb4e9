package router

import (
	"fmt"
	"strings"
	"testing"

	"xiaozhi/mcp"
)

// TestSurvey: what is hidden is listed too, with the reason, and so is why the user is asked.
func TestSurvey(t *testing.T) {
	device := source("device", "self.lamp.set", "self.reboot", "self.shell.run", "self.door.open")
	device.tools[1].Annotations.Audience = []string{"user"}
	own := source("local", "exit", "lamp")
	own.tools[1].When = func(tools []mcp.Tool) bool { return len(tools) == 0 }
	b := newRouter(t, Options{
		Rules: Rules{Deny: []string{"self.shell.*"}, Confirm: []string{"device/*.open"}}, Kinds: map[string]mcp.Kind{"exit": mcp.Control}, Jobs: []string{"self.lamp.set"},
	}, device, own)
	list := func() string {
		var lines []string
		for _, l := range b.Survey() {
			lines = append(lines, fmt.Sprintf("%s %s %s (%s) job=%t asks=%q hidden=%q", l.Tool.Name, l.LLMName, l.Kind, l.Why, l.Job, l.Asks, l.Hidden))
		}
		return strings.Join(lines, "\n")
	}
	want := `exit exit control (tools.kinds: exit) job=false asks="" hidden=""
lamp  query (nothing says that it is a control) job=false asks="" hidden="device"
self.lamp.set self_lamp_set control (its name begins with set) job=true asks="" hidden=""
self.door.open self_door_open control (its name begins with open) job=false asks="tools.confirm: device/*.open" hidden=""
self.reboot  control (its name begins with reboot) job=false asks="" hidden="people"
self.shell.run  control (its name begins with run) job=false asks="" hidden="deny: self.shell.*"`
	if got := list(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for name, c := range map[string]struct {
		call mcp.Call
		runs bool
	}{
		"a person":           {mcp.Call{Name: "self.reboot", By: mcp.ByOutside, Person: true}, true},
		"a program":          {mcp.Call{Name: "self.reboot", By: mcp.ByProgram}, false},
		"the model":          {mcp.Call{Name: "self_reboot", Person: true}, false},
		"one that is denied": {mcp.Call{Name: "self.shell.run", By: mcp.ByOutside, Person: true}, false},
	} {
		if p, refused := b.Prepare(c.call); (refused == nil) != c.runs || c.runs && p.Offer.Tool.Name != "self.reboot" {
			t.Errorf("%s calls a tool for people: %+v", name, refused)
		}
	}
	b.Restrict(Rules{Allow: []string{"exit"}})
	if _, refused := b.Prepare(mcp.Call{Name: "self.reboot", By: mcp.ByOutside, Person: true}); refused == nil {
		t.Error("what an agent may not have is called by a person")
	}
	if got := list(); !strings.Contains(got, `self.lamp.set  control (its name begins with set) job=true asks="" hidden="allow"`) {
		t.Errorf("narrowed:\n%s", got)
	}
}
