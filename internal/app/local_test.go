package app

import (
	"slices"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/mcp/local"
)

// toolNames are the names of the tools with these options.
func toolNames(t *testing.T, o local.Options) []string {
	t.Helper()
	s := local.New(o)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	var names []string
	for _, tool := range s.GetAvailableTools() {
		names = append(names, tool.Name)
	}
	return names
}

func TestLocalTools(t *testing.T) {
	c := config.Default()
	o, err := localTools(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := toolNames(t, o)
	for _, name := range []string{"get_weather", "get_news", "change_role"} {
		if slices.Contains(names, name) {
			t.Errorf("%s is there without being configured", name)
		}
	}
	for _, name := range []string{"get_current_time", "calculate", "set_timer", "exit"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing", name)
		}
	}
	c.Tools.Weather.URL, c.Tools.News.URL = "https://wttr.in/{city}", "https://example.org/rss"
	if o, err = localTools(c, []string{"poet"}); err != nil {
		t.Fatal(err)
	}
	names = toolNames(t, o)
	for _, name := range []string{"get_weather", "get_news", "change_role"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing", name)
		}
	}
	all := &personas{byName: map[string]persona{"default": {}, "poet": {}}, first: "default"}
	if got := rolesOf(all, false); !slices.Equal(got, []string{"poet"}) {
		t.Errorf("roles %v, want those that are not that of all", got)
	}
	for name, p := range map[string]*personas{"poet": {byName: all.byName, first: "default", devices: map[string]config.Device{"a": {Agent: "poet"}}}, "given": all} {
		if got := rolesOf(p, name == "given"); len(got) != 2 {
			t.Errorf("%s: roles %v where a device has another agent", name, got)
		}
	}
}
