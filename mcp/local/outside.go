package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"

	"xiaozhi/mcp"
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

// ifNamed keeps the schema of a tool if the page's URL needs its argument.
func ifNamed(p *web.Page, argument string) func(definition string) string {
	return func(definition string) string {
		if !slices.Contains(p.Names(), argument) {
			return noArguments
		}
		return definition
	}
}

// outside tells of pages of others.
type outside struct {
	weather, news Outside
	log           *slog.Logger
}

// tellWeather tells the weather of a city.
func (o outside) tellWeather(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	city := cmp.Or(strings.TrimSpace(textArg(arguments, "city")), o.weather.City)
	if city == "" && slices.Contains(o.weather.Page.Names(), "city") {
		return fail(say(ctx, "local/which-city"))
	}
	return o.fetch(ctx, o.weather.Page, map[string]string{"city": city})
}

// tellNews tells the news.
func (o outside) tellNews(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	return o.fetch(ctx, o.news.Page, map[string]string{"query": strings.TrimSpace(textArg(arguments, "query"))})
}

// fetch tells what the page says now, or what its service did wrong: not to
// answer is one thing, to answer what cannot be used another.
func (o outside) fetch(ctx context.Context, p *web.Page, values map[string]string) mcp.ActionResponse {
	values["language"] = cmp.Or(mcp.InfoFrom(ctx).Language, "zh")
	page, err := p.Fetch(ctx, values)
	if err == nil {
		return tell(page)
	}
	if ctx.Err() == nil {
		o.log.Warn("page not read", "err", err)
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
