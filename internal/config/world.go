package config

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/mcp/local"
	"xiaozhi/mcp/local/news"
	"xiaozhi/mcp/local/search"
	"xiaozhi/mcp/local/weather"
	"xiaozhi/mcp/local/web"
	"xiaozhi/providers"
)

// Weather configures the weather: a page that it is read from, or a place alone, of which Open-Meteo tells.
type Weather struct {
	URL        string                      `koanf:"url"` // {city} and {language} are filled in; "": no page
	Headers    map[string]providers.Secret `koanf:"headers"`
	HeaderFile map[string]string           `koanf:"headers_file"` // as in Provider
	Result     string                      `koanf:"result"`       // text with {path.of.json}; "": all of the answer
	City       string                      `koanf:"city"`         // if the user names none; without URL it has Open-Meteo asked
	BaseURL    string                      `koanf:"base_url"`     // of an Open-Meteo server of one's own; "": the public one
	Units      string                      `koanf:"units"`        // metric or imperial
	Timeout    time.Duration               `koanf:"timeout"`      // 0: 10 s
}

// News configures the news: a page that they are read from, or feeds by language.
type News struct {
	URL        string                      `koanf:"url"` // {query} and {language} are filled in; "": no page
	Headers    map[string]providers.Secret `koanf:"headers"`
	HeaderFile map[string]string           `koanf:"headers_file"` // as in Provider
	Result     string                      `koanf:"result"`       // text with {path.of.json}; "": a feed's items, or all of the answer
	Feeds      map[string][]string         `koanf:"feeds"`        // by language, names or addresses
	Items      int                         `koanf:"items"`        // of a feed; 0: 10
	Timeout    time.Duration               `koanf:"timeout"`      // 0: 10 s
}

// Search configures what searches the web.
type Search struct {
	Service string           `koanf:"service"` // searxng, tavily, bocha, none, or auto: what has an address or a key
	BaseURL string           `koanf:"base_url"`
	APIKey  providers.Secret `koanf:"api_key"` // "": TAVILY_API_KEY or BOCHA_API_KEY of the environment
	KeyFile string           `koanf:"api_key_file"`
	Results int              `koanf:"results"` // 0: 3
	Timeout time.Duration    `koanf:"timeout"` // 0: 10 s
}

// Music configures the music library.
type Music struct {
	Dir      string            `koanf:"dir"`      // "": music in the data folder
	Stations map[string]string `koanf:"stations"` // by name the addresses of streams, playlists and files, or mcp://SERVER/URI
	URLs     bool              `koanf:"urls"`     // a model may play public addresses that it knows
}

// Home configures Home Assistant.
type Home struct {
	URL     string           `koanf:"url"`   // such as http://homeassistant.local:8123; "": there is none
	Token   providers.Secret `koanf:"token"` // a long-lived access token; "": HOME_ASSISTANT_TOKEN of the environment
	File    string           `koanf:"token_file"`
	MCP     bool             `koanf:"mcp"`     // use its own MCP server in place of its REST interface
	Show    []string         `koanf:"show"`    // patterns of entity ids; empty: all
	Hide    []string         `koanf:"hide"`    // patterns of entity ids
	Doors   bool             `koanf:"doors"`   // garage doors, doors and gates can be opened, after a yes
	Refresh time.Duration    `koanf:"refresh"` // how often areas and entities are read
	Timeout time.Duration    `koanf:"timeout"` // of a request
}

// Page returns the page that the weather is read from, nil if none is configured.
func (c Weather) Page() (*web.Page, error) {
	return page(web.Options{URL: c.URL, Headers: plainHeaders(c.Headers), Result: c.Result, Timeout: c.Timeout}, local.CheckWeather)
}

// Forecast returns Open-Meteo, nil if a page or no place is configured.
func (c Weather) Forecast() (*weather.Service, error) {
	if c.URL != "" || c.City == "" {
		return nil, nil
	}
	return weather.New(weather.Options{Base: c.BaseURL, Place: c.City, Imperial: c.Units == "imperial", Timeout: c.Timeout})
}

// Page returns the page that the news are read from, nil if none is configured.
func (c News) Page() (*web.Page, error) {
	return page(web.Options{URL: c.URL, Headers: plainHeaders(c.Headers), Result: c.Result, Timeout: c.Timeout, Items: c.Items}, local.CheckNews)
}

// Reader returns what reads the feeds, nil if there are none.
func (c News) Reader() (*news.Service, error) {
	feeds := maps.Clone(c.Feeds)
	maps.DeleteFunc(feeds, func(_ string, of []string) bool { return len(of) == 0 })
	if len(feeds) == 0 {
		return nil, nil
	}
	return news.New(news.Options{Feeds: feeds, Items: c.Items, Timeout: c.Timeout})
}

// address returns the address that the key goes to.
func (c Search) address() string {
	return cmp.Or(c.BaseURL, search.Kind(c.Service).Address())
}

// Engine returns what searches the web, nil if nothing does. getenv reads the environment: a key of it goes to the usual address
// of its service only. missing names what a service that is named lacks.
func (c Search) Engine(getenv func(string) string) (engine *search.Service, missing string, err error) {
	o := search.Options{Kind: search.Kind(c.Service), Base: c.BaseURL, Key: string(c.APIKey), Results: c.Results, Timeout: c.Timeout}
	keys := map[search.Kind]string{search.Tavily: "TAVILY_API_KEY", search.Bocha: "BOCHA_API_KEY"}
	fromEnv := func(k search.Kind) string {
		if c.BaseURL != "" {
			return ""
		}
		return getenv(keys[k])
	}
	switch {
	case c.Service == "none":
		return nil, "", nil
	case c.Service != "auto":
	case c.BaseURL != "":
		o.Kind = search.SearXNG
	case fromEnv(search.Tavily) != "":
		o.Kind = search.Tavily
	case fromEnv(search.Bocha) != "":
		o.Kind = search.Bocha
	default:
		return nil, "", nil
	}
	if name := keys[o.Kind]; name != "" && o.Key == "" {
		if o.Key = fromEnv(o.Kind); o.Key == "" {
			return nil, name, nil
		}
	}
	engine, err = search.New(o)
	return engine, "", err
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

// checkWorld reports what is wrong with the services of the world.
func (ch checker) checkWorld(t Tools) {
	if _, err := t.Weather.Page(); err != nil {
		ch.bad(key("tools", "weather", "url"), "config/page-url", err)
	}
	if _, err := t.Weather.Forecast(); err != nil {
		ch.bad(key("tools", "weather", "base_url"), "config/page-url", err)
	}
	ch.oneOf(t.Weather.Units, []string{"metric", "imperial"}, "tools", "weather", "units")
	if _, err := t.News.Page(); err != nil {
		ch.bad(key("tools", "news", "url"), "config/page-url", err)
	}
	if _, err := t.News.Reader(); err != nil {
		ch.bad(key("tools", "news", "feeds"), "config/page-url", err)
	}
	services := []string{"auto", "none"}
	for _, k := range search.Kinds() {
		services = append(services, string(k))
	}
	ch.oneOf(t.Search.Service, services, "tools", "search", "service")
	if _, _, err := t.Search.Engine(func(string) string { return "" }); err != nil && slices.Contains(services, t.Search.Service) && !isSealed(t.Search.APIKey) {
		ch.bad(key("tools", "search", "base_url"), "config/page-url", err)
	}
	if t.Search.Service == "auto" && t.Search.APIKey != "" && t.Search.BaseURL == "" {
		ch.bad(key("tools", "search", "service"), "config/search-service")
	}
	within(ch, t.Weather.Timeout, 0, time.Minute, "tools", "weather", "timeout")
	within(ch, t.News.Timeout, 0, time.Minute, "tools", "news", "timeout")
	within(ch, t.News.Items, 0, 50, "tools", "news", "items")
	within(ch, t.Search.Timeout, 0, time.Minute, "tools", "search", "timeout")
	within(ch, t.Search.Results, 0, 10, "tools", "search", "results")
	checkStations(ch, t.Music)
	checkHome(ch, t.Home)
}

func checkStations(ch checker, m Music) {
	for _, name := range slices.Sorted(maps.Keys(m.Stations)) {
		u, err := url.Parse(m.Stations[name])
		switch {
		case err != nil, !slices.Contains([]string{"http", "https", "mcp"}, u.Scheme), u.Host == "":
			ch.bad(key("tools", "music", "stations", name), "config/station")
		case strings.TrimSpace(name) == "":
			ch.bad(key("tools", "music", "stations", name), "config/station-name")
		}
	}
}

func checkHome(ch checker, h Home) {
	at := key("tools", "home")
	ch.patterns(h.Show, append(at, "show")...)
	ch.patterns(h.Hide, append(at, "hide")...)
	within(ch, h.Refresh, 10*time.Second, 24*time.Hour, append(at, "refresh")...)
	within(ch, h.Timeout, time.Second, time.Minute, append(at, "timeout")...)
	if h.URL == "" {
		return
	}
	if _, err := web.NewClient(web.ClientOptions{Base: h.URL}); err != nil {
		ch.bad(append(at, "url"), "config/page-url", err)
	}
}

// Key returns the token for Home Assistant: that of the settings, or of the environment.
func (h Home) Key(getenv func(string) string) string {
	return cmp.Or(string(h.Token), getenv("HOME_ASSISTANT_TOKEN"))
}
