package router

import (
	"strings"
	"testing"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

func TestGateDecide(t *testing.T) {
	yes, no := true, false
	destroys, spares := mcp.Annotations{Destructive: &yes}, mcp.Annotations{Destructive: &no}
	reads, writes := mcp.Annotations{ReadOnly: &yes}, mcp.Annotations{ReadOnly: &no}
	own := mcp.Tool{Name: "self.door.open", Source: "device"}
	of := func(source string, a mcp.Annotations, trusted bool) mcp.Tool {
		return mcp.Tool{Name: "Files/Delete", Source: source, Annotations: a, Trusted: trusted}
	}
	dialled := mcp.Tool{Name: "open", Source: "external:lamp-2", Entry: "lamp", Trusted: true}
	model, outside, tool, program := mcp.ByModel, mcp.ByOutside, mcp.ByTool, mcp.ByProgram
	for _, c := range []struct {
		name  string
		rules Rules
		tool  mcp.Tool
		by    mcp.Asker
		yes   bool
		want  Decision
		why   string
	}{
		{"nothing is against it", Rules{}, own, model, false, Allowed, ""},
		{"own, from outside", Rules{}, own, outside, false, Allowed, ""},
		{"own, by a program", Rules{}, own, program, false, Allowed, ""},
		{"own, by a tool", Rules{}, own, tool, false, Allowed, ""},
		{"nobody known asks", Rules{Confirm: []string{"*"}}, own, 99, true, Denied, "tools.confirm: *"},

		{"denied by its name", Rules{Deny: []string{"self.door.*"}}, own, model, true, Denied, "deny: self.door.*"},
		{"denied by the model's name", Rules{Deny: []string{"self_door_open"}}, own, model, true, Denied, "deny: self_door_open"},
		{"denied whatever the case", Rules{Deny: []string{"SELF.*"}}, own, model, true, Denied, "deny: SELF.*"},
		{"denied across a slash", Rules{Deny: []string{"files*"}}, of("external:nas", reads, true), model, true, Denied, "deny: files*"},
		{"denied by its source", Rules{Deny: []string{"external:nas/*"}}, of("external:nas", reads, true), outside, true, Denied, "deny: external:nas/*"},
		{"denied by its token", Rules{Deny: []string{"external:lamp/*"}}, dialled, model, true, Denied, "deny: external:lamp/*"},
		{"confirm by its token", Rules{Confirm: []string{"external:lamp/*"}}, dialled, outside, false, Asks, "tools.confirm: external:lamp/*"},
		{"allowed by its token", Rules{Allow: []string{"external:lamp/*"}}, dialled, outside, false, Allowed, ""},
		{"another source", Rules{Deny: []string{"external:nas/*"}}, of("external:box", reads, true), outside, true, Allowed, ""},
		{"allowed by the model's name", Rules{Allow: []string{"SELF_DOOR_*"}}, own, model, false, Allowed, ""},
		{"not among the allowed", Rules{Allow: []string{"self.lamp.*"}}, own, model, true, Denied, "allow"},
		{"deny before allow", Rules{Allow: []string{"*"}, Deny: []string{"*open"}}, own, model, true, Denied, "deny: *open"},
		{"deny before confirm", Rules{Confirm: []string{"*"}, Deny: []string{"*"}}, own, model, true, Denied, "deny: *"},

		{"confirm asks", Rules{Confirm: []string{"self.door.open"}}, own, model, false, Asks, "tools.confirm: self.door.open"},
		{"confirm by the model's name", Rules{Confirm: []string{"self_door_open"}}, own, model, false, Asks, "tools.confirm: self_door_open"},
		{"confirm whatever the case", Rules{Confirm: []string{"*OPEN"}}, own, outside, false, Asks, "tools.confirm: *OPEN"},
		{"confirm by source", Rules{Confirm: []string{"device/*"}}, own, outside, false, Asks, "tools.confirm: device/*"},
		{"a yes", Rules{Confirm: []string{"*"}}, own, model, true, Allowed, "tools.confirm: *"},
		{"a yes to a call from outside", Rules{Confirm: []string{"*"}}, own, outside, true, Allowed, "tools.confirm: *"},
		{"a tool cannot ask", Rules{Confirm: []string{"*"}}, own, tool, false, Denied, "tools.confirm: *"},
		{"nor has it a yes", Rules{Confirm: []string{"*"}}, own, tool, true, Denied, "tools.confirm: *"},
		{"a program cannot ask", Rules{Confirm: []string{"*"}}, own, program, false, Denied, "tools.confirm: *"},
		{"nor answer for the person", Rules{Confirm: []string{"*"}}, own, program, true, Denied, "tools.confirm: *"},

		{"what destroys asks", Rules{}, mcp.Tool{Name: "x", Source: "local", Annotations: destroys}, model, false, Asks, "destructiveHint"},
		{"what destroys, by a program", Rules{}, mcp.Tool{Name: "x", Source: "file", Annotations: destroys}, program, false, Denied, "destructiveHint"},
		{"what destroys, of a trusted server", Rules{}, of("external:nas", destroys, true), model, false, Asks, "destructiveHint"},
		{"what destroys and says that it reads", Rules{}, of("external:nas", mcp.Annotations{ReadOnly: &yes, Destructive: &yes}, true), model, false, Asks, "destructiveHint"},
		{"external without hints", Rules{}, of("external:nas", mcp.Annotations{}, false), model, false, Asks, "neither"},
		{"external without hints, outside", Rules{}, of("external:nas", mcp.Annotations{}, false), outside, false, Asks, "neither"},
		{"external without hints, by a program", Rules{}, of("external:nas", mcp.Annotations{}, false), program, false, Denied, "neither"},
		{"external that only says it is idempotent", Rules{}, of("external:nas", mcp.Annotations{Idempotent: &yes}, false), model, false, Asks, "neither"},
		{"external that writes", Rules{}, of("external:nas", writes, false), model, false, Asks, "neither"},
		{"external that reads", Rules{}, of("external:nas", reads, false), program, false, Allowed, ""},
		{"external that spares", Rules{}, of("external:nas", spares, false), program, false, Allowed, ""},
		{"external, trusted", Rules{}, of("external:nas", mcp.Annotations{}, true), program, false, Allowed, ""},
		{"trust is for external servers", Rules{Confirm: []string{"*"}}, of("external:nas", mcp.Annotations{}, true), model, false, Asks, "tools.confirm: *"},
	} {
		got := NewGate(c.rules).Decide(Case{Tool: c.tool, Names: []string{mcp.FunctionName(c.tool.Name)}, By: c.by, Consented: c.yes})
		if got.Decision != c.want || !strings.HasPrefix(got.Why, c.why) || (got.Why == "") != (c.why == "") {
			t.Errorf("%s: %+v, want %d %q", c.name, got, c.want, c.why)
		}
		for _, lang := range []text.Lang{text.Chinese, text.English} {
			if reason := got.Refusal("the tool", lang); c.want == Denied && (!strings.Contains(reason, "the tool") || strings.HasPrefix(reason, "router/")) {
				t.Errorf("%s: refused with %q", c.name, reason)
			}
		}
		if hides := NewGate(c.rules).Hides(c.tool, mcp.FunctionName(c.tool.Name)); hides != (strings.HasPrefix(c.why, "deny") || c.why == "allow") {
			t.Errorf("%s: hidden %v", c.name, hides)
		}
	}
	if (Verdict{}).Decision != Denied {
		t.Error("what was not decided is allowed")
	}
}

// A yes to what only certain people may allow is theirs, whatever else asks for one.
func TestGateAsksCertainPeople(t *testing.T) {
	door := mcp.Tool{Name: "self.door.open", Source: "device"}
	by := func(rules ...string) map[string][]string {
		m := map[string][]string{}
		for _, rule := range rules {
			pattern, people, _ := strings.Cut(rule, " ")
			m[pattern] = strings.Fields(people)
		}
		return m
	}
	for _, c := range []struct {
		name   string
		rules  Rules
		person string
		yes    bool
		want   Decision
		people string
	}{
		{"it asks", Rules{ConfirmBy: by("self.door.* Anna Ben")}, "", false, Asks, "Anna Ben"},
		{"not those of other tools", Rules{ConfirmBy: by("self.safe.* Anna")}, "", false, Allowed, ""},
		{"a yes of nobody", Rules{ConfirmBy: by("self.door.* Anna")}, "", true, Denied, "Anna"},
		{"of somebody else", Rules{ConfirmBy: by("self.door.* Anna")}, "Ben", true, Denied, "Anna"},
		{"of theirs", Rules{ConfirmBy: by("self.door.* Anna Ben")}, "ben", true, Allowed, ""},
		{"beside confirm", Rules{Confirm: []string{"*"}, ConfirmBy: by("self.door.* Anna")}, "", true, Denied, "Anna"},
		{"two rules: of those that both name", Rules{ConfirmBy: by("self.door.* Anna Ben", "self.* ben Cem")}, "", false, Asks, "ben"},
		{"and of no other", Rules{ConfirmBy: by("self.door.* Anna Ben", "self.* ben Cem")}, "Anna", true, Denied, "ben"},
		{"that name nobody in common", Rules{ConfirmBy: by("self.door.* Anna", "self.* Ben")}, "Anna", true, Denied, ""},
	} {
		got := NewGate(c.rules).Decide(Case{Tool: door, By: mcp.ByModel, Consented: c.yes, Person: c.person})
		if got.Decision != c.want || strings.Join(got.By, " ") != c.people {
			t.Errorf("%s: %+v, want %d by %q", c.name, got, c.want, c.people)
		}
		for lang, and := range map[text.Lang]string{text.Chinese: "只有", text.English: "only"} {
			if reason := got.Refusal("the door", lang); c.want == Denied && c.people != "" && (!strings.Contains(reason, and) || !strings.Contains(reason, c.people)) {
				t.Errorf("%s: refused with %q", c.name, reason)
			}
		}
	}
}
