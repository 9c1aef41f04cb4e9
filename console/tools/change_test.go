package tools

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// fakeSettings keep what was asked for.
type fakeSettings struct {
	config *config.Config
	edits  []settings.Edit
	base   int
	off    error
	plan   error
	done   int // plans
}

func (s *fakeSettings) Current() *config.Config { return s.config }
func (s *fakeSettings) Revision() int           { return 7 }
func (s *fakeSettings) Changeable() error       { return s.off }

func (s *fakeSettings) Plan(_ context.Context, _ account.Person, base int, edits []settings.Edit) (*settings.Plan, error) {
	s.edits, s.base, s.done = edits, base, s.done+1
	return &settings.Plan{ID: "p"}, s.plan
}

// asked returns the edits that were asked for last, a line each, and forgets them.
func (s *fakeSettings) asked() string {
	var lines []string
	for _, e := range s.edits {
		value, _ := json.Marshal(e.Value)
		if e.Remove {
			value = []byte("-")
		}
		lines = append(lines, strings.Join(e.Path, "/")+" "+string(value))
	}
	s.edits = nil
	return strings.Join(lines, "\n")
}

// TestRules: the switches of a tool become rules for it alone; those that others switch on are only told.
func TestRules(t *testing.T) {
	s, set := house(), &fakeSettings{config: config.Default()}
	set.config.Tools.Deny, set.config.Tools.Jobs, set.config.Tools.Kinds = []string{"*.shell.*", "clock"}, []string{"device/self.lamp.set", "x"}, map[string]mcp.Kind{"self.lamp.*": mcp.Query}
	s.set = set
	odd := listed("external:a/b", `we[ird*\`, "")
	s.here = append(s.here, odd)
	v := visit(t, s, olga)
	lamp, clock := onPath+"m1/"+idOf(s.tools["m1"][1].Tool), herePath+idOf(s.here[0].Tool)
	set.config.Tools.Timeouts = map[string]time.Duration{"clock": 20 * time.Second, "device/*.shell.*": time.Minute}
	v.want(v.ask(clock), 200, `name="timeout" type="text" autocomplete="off" value="20s"`)
	v.want(v.ask(onPath+"m1/"+idOf(s.tools["m1"][2].Tool)), 200, "for device/*.shell.*")
	for _, odd := range []string{"soon", "0.5s", "2h", "-3s"} {
		v.want(v.ask(lamp, "do", "rules", "timeout", odd), 422, `id="e-timeout"`)
	}
	v.want(v.ask(lamp), 200, "How it is used", `id="f-jobs" name="jobs" value="yes" checked`, `name="revision" value="7"`)
	v.want(v.ask(onPath+"m1/"+idOf(s.tools["m1"][2].Tool)), 200, "for *.shell.*")
	for _, c := range []struct {
		page string
		form []string
		want string
	}{
		{lamp, []string{"kind", "control", "jobs", "yes"}, `tools/kinds/self.lamp.set "control"`},
		{lamp, []string{"kind", "nonsense", "confirm", "yes"}, "tools/jobs [\"x\"]\ntools/confirm [\"device/self.lamp.set\"]"},
		{lamp, []string{"jobs", "yes", "deny", "yes"}, `tools/deny ["*.shell.*","clock","device/self.lamp.set"]`},
		{lamp, []string{"jobs", "yes", "timeout", "90"}, `tools/timeouts/device/self.lamp.set "1m30s"`},
		{clock, []string{"deny", "yes", "timeout", ""}, `tools/timeouts/clock -`},
		{clock, []string{"deny", "yes", "timeout", "20s"}, ""},
		{herePath + idOf(s.here[0].Tool), []string{"timeout", "20s"}, `tools/deny ["*.shell.*"]`},
		{herePath + idOf(odd.Tool), []string{"kind", "query", "deny", "yes"}, `tools/kinds/we\[ird\*\\ "query"` + "\n" + `tools/deny ["*.shell.*","clock","external:a/b/we\\[ird\\*\\\\"]`},
	} {
		w := v.ask(c.page, append([]string{"do", "rules", "revision", "5"}, c.form...)...)
		next := "/console/settings/-/plan/p?" + url.Values{"to": {c.page}}.Encode() // it is looked at before it counts
		if c.want == "" {
			next = c.page
		}
		if got := set.asked(); got != c.want || c.want != "" && set.base != 5 || w.Code != 303 || w.Header().Get("Location") != next {
			t.Errorf("%v: %d, of %d\n%s\nwant\n%s", c.form, w.Code, set.base, got, c.want)
		}
	}
	if pattern, ok := mcp.FitsTool([]string{patternOf(odd.Tool)}, odd.Tool); !ok {
		t.Errorf("%s does not fit its tool", pattern)
	}
	if w := v.ask(lamp, "do", "rules", "revision", "7", "jobs", "yes"); w.Code != 303 || set.asked() != "" {
		t.Errorf("nothing has changed: %d", w.Code)
	}
	set.plan = &settings.PinnedError{Path: []string{"tools", "jobs"}, Origin: config.Origin{Place: "data/config.yaml:3"}}
	v.want(v.ask(lamp, "do", "rules"), 422, "data/config.yaml:3")
	set.plan, set.off = nil, settings.ErrReadOnly
	v.want(v.ask(lamp), 200, "console.edit is false", "disabled")
	v.who = anna
	if strings.Contains(v.want(v.ask(lamp), 200), "How it is used") {
		t.Error("a member sees the rules")
	}
	done := set.done
	if w := v.ask(lamp, "do", "rules", "deny", "yes"); w.Code != 403 || set.done != done {
		t.Errorf("a member changes the rules: %d", w.Code)
	}
}

// TestEditServer: a server is tried before it is kept, with what was typed; secrets stay, and never come back.
func TestEditServer(t *testing.T) {
	s, set := house(), &fakeSettings{config: config.Default()}
	set.config.Tools.External.MCPServers = map[string]config.MCPServer{
		"maps": {URL: "https://maps.example.org/mcp?key=secret-1", Headers: map[string]providers.Secret{"Authorization": "Bearer secret-2", "X-Old": "secret-3"}, Transport: "http", Deny: []string{"delete_*"}},
		"off":  {Disabled: true, URL: "http://h/"}, "files": {Command: "npx", Args: []string{"-y"}, Env: map[string]providers.Secret{"KEY": "secret-4"}},
	}
	s.set = set
	v := visit(t, s, olga)
	v.want(v.ask(serversPath), 200, "Add a server", `href="/console/tools/servers/edit?name=off"`)
	body := v.want(v.ask(editPath+"?name=maps"), 200, "https://maps.example.org/mcp", "Authorization: ••••", "delete_*")
	if strings.Contains(body, "secret-") {
		t.Error("a secret is shown")
	}
	v.want(v.ask(editPath+"?name=nobody"), 404)
	body = v.want(v.ask(editPath), 200, "console.commands: true")
	if strings.Contains(body, `value="stdio"`) {
		t.Error("a program can be added without leave")
	}
	for field, c := range map[string][]string{
		"name":    {"name", "a b", "type", "http", "url", "http://h/"},
		"type":    {"name", "n", "type", "stdio", "command", "sh"},
		"url":     {"name", "n", "type", "http", "url", "http://169.254.169.254/latest"},
		"headers": {"name", "n", "type", "http", "url", "http://h/", "headers", "nonsense"},
		"allow":   {"name", "n", "type", "sse", "url", "http://h/", "allow", "[x"},
		"timeout": {"name", "n", "type", "sse", "url", "http://h/", "timeout", "soon"},
	} {
		w := v.ask(editPath, append(c, "do", "save")...)
		if body := v.want(w, 422); field != "type" && !strings.Contains(body, `id="e-`+field+`"`) {
			t.Errorf("%v: no mistake at %s", c, field)
		}
	}
	v.want(v.ask(editPath, "name", "maps", "type", "http", "url", "http://h/", "do", "save"), 422, "There is a server of this name")
	v.want(v.ask(editPath, "name", "n", "type", "ws", "url", "http://h/", "do", "save"), 422, "wants an address")
	if len(s.tried) > 0 || set.done > 0 {
		t.Fatal("what is wrong was tried or kept")
	}
	form := []string{"type", "http", "url", "https://maps.example.org/mcp", "headers", "Authorization: ••••\nX-New: secret-5", "deny", "delete_*"}
	v.want(v.ask(editPath+"?name=maps", append(form, "do", "test")...), 200, "maps answers. Tools: 2")
	if e := s.tried[0]; e.URL != "https://maps.example.org/mcp?key=secret-1" || e.Headers["Authorization"] != "Bearer secret-2" || e.Headers["X-New"] != "secret-5" || len(e.Headers) != 2 {
		t.Errorf("tried %+v", e)
	}
	s.tested = errTestTime
	v.want(v.ask(editPath+"?name=maps", append(form, "do", "test")...), 200, "did not answer as it should", "a line", "X-New: secret-5")
	if w := v.ask(editPath+"?name=maps", append(form, "do", "save", "revision", "6", "trust", "yes")...); w.Code != 303 || set.base != 6 {
		t.Errorf("%d, of %d", w.Code, set.base)
	}
	if got, want := set.asked(), "tools/external/mcpServers/maps/headers/X-New \"secret-5\"\ntools/external/mcpServers/maps/headers/X-Old -\ntools/external/mcpServers/maps/trust true"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	v.want(v.ask(editPath+"?name=maps", "type", "http", "url", "https://evil.example.org/mcp", "headers", "Authorization: ••••", "do", "test"), 422, "Please enter it again")
	if len(s.tried) != 2 {
		t.Error("a secret went to another host")
	}
	v.ask(editPath+"?name=maps", "do", "remove")
	if got := set.asked(); got != "tools/external/mcpServers/maps -" {
		t.Error(got)
	}
	set.plan = &settings.InvalidError{Problems: []*config.Error{{Path: serversAt("maps", "url"), English: "no good", Chinese: "不行"}}}
	v.lang = "zh"
	v.want(v.ask(editPath+"?name=maps", append(form, "do", "save", "timeout", "9s")...), 422, `id="e-url"`, "不行")
}

// TestEditProgram: where a file allows it, a program is added with its arguments and variables.
func TestEditProgram(t *testing.T) {
	s, set := house(), &fakeSettings{config: config.Default()}
	set.config.Console.Commands = true
	s.set = set
	v := visit(t, s, olga)
	v.want(v.ask(editPath), 200, `value="stdio"`, "A program of this machine")
	if w := v.ask(editPath, "name", "files", "type", "stdio", "command", "npx", "args", "-y\r\n@x/server", "env", "KEY=a=b", "do", "save"); w.Code != 303 {
		t.Errorf("%d\n%.3000s", w.Code, w.Body)
	}
	want := "tools/external/mcpServers/files/transport \"stdio\"\ntools/external/mcpServers/files/command \"npx\"\ntools/external/mcpServers/files/args [\"-y\",\"@x/server\"]\ntools/external/mcpServers/files/env/KEY \"a=b\""
	if got := set.asked(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
