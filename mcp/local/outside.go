package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local/web"
)

// Outside is a page of somebody else's that a tool tells of.
type Outside struct {
	Page *web.Page // nil: the tool is not offered
	City string    // of the weather, where none is named
}

// Names that the URL of a page may hold in braces.
func weatherNames() []string { return []string{"city", "language"} }
func newsNames() []string    { return []string{"query", "language"} }

// CheckWeather says what is wrong with a page for the weather, and CheckNews
// with one for news.
func CheckWeather(p *web.Page) error { return checkNames(p, weatherNames()) }

// CheckNews is CheckWeather for news.
func CheckNews(p *web.Page) error { return checkNames(p, newsNames()) }

func checkNames(p *web.Page, known []string) error {
	for _, name := range p.Names() {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the url holds {%s}, but known are {%s}", name, strings.Join(known, "}, {"))
		}
	}
	return nil
}

// outsideSchema has the argument that the page's URL needs.
func outsideSchema(p *web.Page, name, description string) string {
	if !slices.Contains(p.Names(), name) {
		return noArguments
	}
	return `{"type":"object","properties":{"` + name + `":{"type":"string","maxLength":100,"description":"` + description + `"}}}`
}

func (s *Source) tellWeather(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	city := cmp.Or(strings.TrimSpace(textArg(arguments, "city")), s.weather.City)
	if city == "" && slices.Contains(s.weather.Page.Names(), "city") {
		return fail(say(ctx, "哪个城市？请给出 city", "which city? give city"))
	}
	return s.fetch(ctx, s.weather.Page, map[string]string{"city": city})
}

func (s *Source) tellNews(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	return s.fetch(ctx, s.news.Page, map[string]string{"query": strings.TrimSpace(textArg(arguments, "query"))})
}

// fetch tells what the page says now.
func (s *Source) fetch(ctx context.Context, p *web.Page, values map[string]string) mcp.ActionResponse {
	values["language"] = cmp.Or(mcp.InfoFrom(ctx).Language, "zh")
	text, err := p.Fetch(ctx, values)
	if err == nil {
		return tell(text)
	}
	if ctx.Err() == nil {
		s.log.Warn("page not read", "err", err)
	}
	why := say(ctx, "没有回答", err.Error())
	if status, ok := errors.AsType[web.StatusError](err); ok && mcp.InfoFrom(ctx).Language != "en" {
		why = fmt.Sprintf("回答了 HTTP %d", int(status))
	}
	return fail(say(ctx, "查询失败：服务", "the service could not be asked: ") + why)
}
