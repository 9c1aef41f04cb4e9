package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xiaozhi/mcp/local"
	"xiaozhi/providers"
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
	c := DefaultConfig()
	o, err := localTools(c, "data", []string{"default"})
	if err != nil {
		t.Fatal(err)
	}
	names := toolNames(t, o)
	for _, name := range []string{"get_weather", "get_news", "change_role"} {
		if slices.Contains(names, name) {
			t.Errorf("%s is there without being configured", name)
		}
	}
	for _, name := range []string{"get_current_time", "calculate", "set_timer", "play_music", "exit"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing", name)
		}
	}
	c.Tools.Weather.URL, c.Tools.News.URL = "https://wttr.in/{city}", "https://example.org/rss"
	if o, err = localTools(c, "data", []string{"default", "poet"}); err != nil {
		t.Fatal(err)
	}
	names = toolNames(t, o)
	for _, name := range []string{"get_weather", "get_news", "change_role"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing", name)
		}
	}
	if !slices.Equal(o.Roles, []string{"poet"}) {
		t.Errorf("roles %v, want those that are not the configured one", o.Roles)
	}
	if got := musicDir(c, "data"); got != filepath.Join("data", "music") {
		t.Errorf("music is in %s", got)
	}
	if c.Tools.Music.Dir = "/srv/songs"; musicDir(c, "data") != "/srv/songs" {
		t.Errorf("music is in %s", musicDir(c, "data"))
	}
}

func TestBadPages(t *testing.T) {
	for text, want := range map[string]string{
		"tools: {weather: {url: wttr.in}}":                                      "tools.weather.url: the url must begin with http:// or https://",
		"tools: {weather: {url: 'https://wttr.in/{town}'}}":                     "tools.weather.url: the url holds {town}, but known are {city}, {language}",
		"tools: {news: {url: 'https://u:secret@example.org/'}}":                 "tools.news.url: the url must not hold a password",
		"tools: {news: {url: 'https://example.org/', result: x}}":               `tools.news.url: the result "x" holds no {path.of.json}`,
		"tools: {news: {items: 500}}":                                           "tools.news.items: 500 is not within 0 and 50",
		"tools: {weather: {timeout: 5m}}":                                       "tools.weather.timeout: 5m0s is not within 0s and 1m0s",
		"tools: {weather: {url: 'https://${NO_SUCH}/'}}":                        "NO_SUCH is not set",
		"tools: {wether: {}}":                                                   "weather",
		"tools: {weather: {url: 'https://wttr.in/', headers: {X-Key: [a, b]}}}": "tools.weather.headers.X-Key",
	} {
		_, err := loadText(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestHeadersFromTheEnvironment(t *testing.T) {
	c := mustLoadText(t, "tools: {weather: {url: 'https://wttr.in/', headers: {X-Key: '${KEY}'}}}", "KEY=k")
	if got := plainHeaders(c.Tools.Weather.Headers)["X-Key"]; got != "k" {
		t.Errorf("the header is %q", got)
	}
	if got := plainHeaders(map[string]providers.Secret{}); len(got) != 0 {
		t.Errorf("headers of nothing: %v", got)
	}
}
