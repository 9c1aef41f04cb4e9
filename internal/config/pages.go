package config

import (
	"time"

	"xiaozhi/mcp/local"
	"xiaozhi/mcp/local/web"
	"xiaozhi/providers"
)

// Page returns the page that the weather is read from, nil if none is configured.
func (c Weather) Page() (*web.Page, error) {
	return page(web.Options{URL: c.URL, Headers: plainHeaders(c.Headers), Result: c.Result, Timeout: c.Timeout}, local.CheckWeather)
}

// Page returns the page that the news are read from, nil if none is configured.
func (c News) Page() (*web.Page, error) {
	return page(web.Options{URL: c.URL, Headers: plainHeaders(c.Headers), Result: c.Result, Timeout: c.Timeout, Items: c.Items}, local.CheckNews)
}

func page(o web.Options, check func(*web.Page) error) (*web.Page, error) {
	if o.URL == "" {
		return nil, nil
	}
	p, err := web.New(o)
	if err != nil {
		return nil, err
	}
	return p, check(p)
}

func plainHeaders(headers map[string]providers.Secret) map[string]string {
	plain := make(map[string]string, len(headers))
	for name, value := range headers {
		plain[name] = string(value)
	}
	return plain
}

// checkPages reports what is wrong with the pages that tools tell of.
func (ch checker) checkPages(t Tools) {
	if _, err := t.Weather.Page(); err != nil {
		ch.bad(key("tools", "weather", "url"), "config/page-url", err)
	}
	if _, err := t.News.Page(); err != nil {
		ch.bad(key("tools", "news", "url"), "config/page-url", err)
	}
	within(ch, t.Weather.Timeout, 0, time.Minute, "tools", "weather", "timeout")
	within(ch, t.News.Timeout, 0, time.Minute, "tools", "news", "timeout")
	within(ch, t.News.Items, 0, 50, "tools", "news", "items")
}
