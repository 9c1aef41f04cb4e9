package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"xiaozhi/agent"
	"xiaozhi/audio"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/local/web"
	"xiaozhi/providers"
)

// localTools are the options of the server's own tools. roles are the prompts
// that there are. LoadConfig has seen that the pages can be made.
func localTools(cfg *Config, data string, roles []string) (local.Options, error) {
	weather, err := weatherPage(cfg.Tools.Weather)
	if err != nil {
		return local.Options{}, fmt.Errorf("tools.weather: %w", err)
	}
	news, err := newsPage(cfg.Tools.News)
	if err != nil {
		return local.Options{}, fmt.Errorf("tools.news: %w", err)
	}
	return local.Options{
		Roles:   slices.DeleteFunc(slices.Clone(roles), func(name string) bool { return name == cfg.Agent.Prompt }),
		Weather: local.Outside{Page: weather, City: cfg.Tools.Weather.City},
		News:    local.Outside{Page: news},
		Music:   local.NewMusic(musicDir(cfg, data)),
	}, nil
}

// musicDir is the folder of the server's music.
func musicDir(cfg *Config, data string) string {
	if dir := cfg.Tools.Music.Dir; dir != "" {
		return dir
	}
	return filepath.Join(data, "music")
}

// weatherPage is nil where none is configured.
func weatherPage(c WeatherConfig) (*web.Page, error) {
	return page(web.Options{URL: c.URL, Headers: plainHeaders(c.Headers), Result: c.Result, Timeout: c.Timeout}, local.CheckWeather)
}

// newsPage is nil where none is configured.
func newsPage(c NewsConfig) (*web.Page, error) {
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
func (l *configLoader) checkPages(t ToolsConfig) {
	const hint = "应是完整的地址，例如 https://wttr.in/{city}?format=j1"
	if _, err := weatherPage(t.Weather); err != nil {
		l.bad(err.Error(), hint, "tools", "weather", "url")
	}
	if _, err := newsPage(t.News); err != nil {
		l.bad(err.Error(), hint, "tools", "news", "url")
	}
	within(l, t.Weather.Timeout, 0, time.Minute, "tools", "weather", "timeout")
	within(l, t.News.Timeout, 0, time.Minute, "tools", "news", "timeout")
	within(l, t.News.Items, 0, 50, "tools", "news", "items")
}

// musicLibrary is the music folder as a conversation plays it: agent.Music.
type musicLibrary struct{ folder *local.Music }

// Open opens a song by the id that a tool gave.
func (m musicLibrary) Open(id string) (agent.Song, error) {
	file, err := m.folder.Open(id)
	if err != nil {
		return nil, err
	}
	track, err := audio.OpenTrack(file)
	if err != nil {
		return nil, err
	}
	return track, nil
}

// Next names the song after the one of that id.
func (m musicLibrary) Next(id string) (next, title string, err error) {
	song, err := m.folder.Next(id)
	return song.ID, song.Title, err
}
