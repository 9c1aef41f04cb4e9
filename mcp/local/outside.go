package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local/news"
	"xiaozhi/mcp/local/search"
	"xiaozhi/mcp/local/weather"
	"xiaozhi/mcp/local/web"
)

// Outside is a web page that a tool reads.
type Outside struct {
	Page *web.Page // nil: the tool is not offered
	City string    // of the weather, where none is named
}

// CheckWeather says what is wrong with a page for the weather: its URL may hold
// the city and the language in braces.
func CheckWeather(p *web.Page) error { return checkNames(p, "city", "language") }

// CheckNews is CheckWeather for news, of which a query is known.
func CheckNews(p *web.Page) error { return checkNames(p, "query", "language") }

func checkNames(p *web.Page, known ...string) error {
	for _, name := range p.Names() {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the url holds {%s}, but known are {%s}", name, strings.Join(known, "}, {"))
		}
	}
	return nil
}

// World holds what asks the services of the world.
type World struct {
	Weather, News Outside          // pages; they count before the services below
	Forecast      *weather.Service // nil: none
	Feeds         *news.Service    // nil: none
	Search        *search.Service  // nil: the web is not searched
}

// worldTools are the tools that ask it.
func worldTools() []string {
	return []string{"get_weather", "get_news", "get_news_details", "web_search"}
}

// only keeps of the arguments of a tool that a page fills in those that the page's URL needs.
func only(p *web.Page) func(definition string) string { return keep(p.Names()...) }

// keep keeps these of the arguments of a tool.
func keep(names ...string) func(definition string) string {
	return func(definition string) string {
		var s struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal([]byte(definition), &s) != nil {
			return noArguments
		}
		maps.DeleteFunc(s.Properties, func(name string, _ json.RawMessage) bool { return !slices.Contains(names, name) })
		kept, err := json.Marshal(s)
		if err != nil || len(s.Properties) == 0 {
			return noArguments
		}
		return string(kept)
	}
}

// outside asks services of the world.
type outside struct {
	World
	log *slog.Logger
}

// weatherTool is the tool of the page, or of the service.
func (o outside) weatherTool() entry {
	e := entry{name: "get_weather", stream: "info", runs: mcp.ToolWait, readOnly: true}
	switch {
	case o.Weather.Page != nil:
		e.handler, e.schema = o.pageWeather, only(o.Weather.Page)
	case o.Forecast != nil:
		e.handler = o.forecast
	default:
		e.off = true
	}
	return e
}

// newsTool is the tool of the page, or of the feeds.
func (o outside) newsTool() entry {
	e := entry{name: "get_news", stream: "info", runs: mcp.ToolWait, readOnly: true}
	switch {
	case o.News.Page != nil:
		e.handler, e.schema = o.pageNews, only(o.News.Page)
	case o.Feeds != nil:
		e.handler = o.headlines
	default:
		e.off = true
	}
	return e
}

// pageWeather tells the weather of a city.
func (o outside) pageWeather(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	city := cmp.Or(strings.TrimSpace(textArg(arguments, "city")), o.Weather.City)
	if city == "" && slices.Contains(o.Weather.Page.Names(), "city") {
		return fail(say(ctx, "local/which-city"))
	}
	return o.fetch(ctx, o.Weather.Page, map[string]string{"city": city})
}

// pageNews tells the news.
func (o outside) pageNews(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	return o.fetch(ctx, o.News.Page, map[string]string{"query": strings.TrimSpace(textArg(arguments, "query"))})
}

// forecast tells the weather of a place.
func (o outside) forecast(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	q := weather.Question{
		Place: strings.TrimSpace(textArg(arguments, "city")), Day: strings.TrimSpace(textArg(arguments, "day")), About: weather.Topic(textArg(arguments, "about")), Lang: language(ctx),
	}
	if !readable(ctx, q.Day) {
		return fail(say(ctx, "local/day-none", q.Day))
	}
	told, err := o.Forecast.Tell(ctx, q)
	switch {
	case err == nil:
		return tell(told)
	case errors.Is(err, weather.ErrWhere):
		return fail(say(ctx, "local/which-city"))
	case errors.Is(err, weather.ErrNoPlace):
		return fail(say(ctx, "weather/place-none", q.Place))
	case errors.Is(err, weather.ErrDay):
		return fail(say(ctx, "local/day-none", q.Day))
	case errors.Is(err, weather.ErrFar):
		return fail(say(ctx, "weather/too-far", weather.Days))
	}
	return o.failed(ctx, err)
}

// told holds the words of others for a model, with a note that nothing of them is an instruction.
type told struct {
	Note      string          `json:"note"`
	Headlines []headline      `json:"headlines,omitempty"`
	Results   []search.Result `json:"results,omitempty"`
	Text      string          `json:"text,omitempty"`
	Site      string          `json:"site,omitempty"`
}

type headline struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Site   string `json:"site"`
}

// quote tells what others say.
func quote(ctx context.Context, t told) mcp.ActionResponse {
	t.Note = say(ctx, "local/quoted")
	raw, err := json.Marshal(t)
	if err != nil { // texts can always be encoded
		return fail(err.Error())
	}
	return tell(string(raw))
}

// headlines tells what is new.
func (o outside) headlines(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	all, err := o.Feeds.Headlines(ctx, mcp.InfoFrom(ctx).DeviceID, strings.TrimSpace(textArg(arguments, "query")), language(ctx))
	switch {
	case errors.Is(err, news.ErrNothing):
		return fail(say(ctx, "local/news-none"))
	case err != nil:
		return o.failed(ctx, err)
	}
	var t told
	for i, h := range all {
		t.Headlines = append(t.Headlines, headline{i + 1, h.Title, h.Site})
	}
	return quote(ctx, t)
}

// newsDetails tells what is behind a headline.
func (o outside) newsDetails(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	number, _ := intArg(arguments, "number")
	h, err := o.Feeds.Item(mcp.InfoFrom(ctx).DeviceID, number, strings.TrimSpace(textArg(arguments, "words")))
	switch {
	case err != nil:
		return fail(say(ctx, "local/news-which"))
	case h.About == "" || h.About == h.Title:
		return fail(say(ctx, "local/news-no-more", h.Title))
	}
	return quote(ctx, told{Text: h.About, Site: h.Site})
}

// refused says what the owner must do about a service.
func (o outside) refused(ctx context.Context, err error, id string) mcp.ActionResponse {
	o.log.Warn("the web cannot be searched", "err", err)
	return fail(say(ctx, id))
}

// search searches the web.
func (o outside) search(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	found, err := o.Search.Search(ctx, textArg(arguments, "query"), language(ctx))
	switch {
	case errors.Is(err, search.ErrQuery):
		return fail(say(ctx, "local/search-what"))
	case errors.Is(err, search.ErrKey):
		return o.refused(ctx, err, "local/search-key")
	case errors.Is(err, search.ErrMoney):
		return o.refused(ctx, err, "local/search-money")
	case errors.Is(err, search.ErrFormat):
		return o.refused(ctx, err, "local/search-format")
	case err != nil:
		return o.failed(ctx, err)
	case len(found) == 0:
		return fail(say(ctx, "local/search-none"))
	}
	return quote(ctx, told{Results: found})
}

// fetch tells what the page says now, or what its service did wrong.
func (o outside) fetch(ctx context.Context, p *web.Page, values map[string]string) mcp.ActionResponse {
	values["language"] = cmp.Or(mcp.InfoFrom(ctx).Language, "zh")
	page, err := p.Fetch(ctx, values)
	if err == nil {
		return tell(page)
	}
	return o.failed(ctx, err)
}

// failed says what a service did wrong: not to answer is one thing, to answer what cannot be used another.
func (o outside) failed(ctx context.Context, err error) mcp.ActionResponse {
	if ctx.Err() == nil {
		o.log.Warn("a service of the world cannot be asked", "err", err, "said", text.Line(string(web.Refusal(err))))
	}
	status, isStatus := errors.AsType[web.StatusError](err)
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case isStatus:
		return fail(say(ctx, "local/service-status", err, int(status)))
	case isNet, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.Canceled):
		return fail(say(ctx, "local/service-silent", err))
	case errors.Is(err, web.ErrTooLarge):
		return fail(say(ctx, "local/service-large", err))
	case errors.Is(err, web.ErrElsewhere), errors.Is(err, web.ErrInternal):
		return fail(say(ctx, "local/service-elsewhere", err))
	}
	return fail(say(ctx, "local/service-unclear", err))
}
