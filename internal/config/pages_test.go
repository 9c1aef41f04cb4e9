package config

import (
	"strings"
	"testing"

	"xiaozhi/providers"
)

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

func TestHeadersFromEnvironment(t *testing.T) {
	c := mustLoadText(t, "tools: {weather: {url: 'https://wttr.in/', headers: {X-Key: '${KEY}'}}}", "KEY=k")
	if got := plainHeaders(c.Tools.Weather.Headers)["X-Key"]; got != "k" {
		t.Errorf("the header is %q", got)
	}
	if got := plainHeaders(map[string]providers.Secret{}); len(got) != 0 {
		t.Errorf("headers of nothing: %v", got)
	}
}
