package rules

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/lunar"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/providers"
)

// outside asks the tools that know the world outside, and says what they tell.
type outside struct{ request }

// isForecast, isNews and isSearch report whether a tool tells the weather, the news, or what is on the web.
func isForecast(t tool) bool {
	return t.has("weather", "forecast") && t.onlyNeeds("city", "location", "place")
}

func isNews(t tool) bool {
	return t.has("news", "headlines") && !t.has("details", "detail") && t.free()
}

func isSearch(t tool) bool {
	return t.has("search") && t.has("web", "internet", "online") && t.onlyNeeds("query") && t.takes("query")
}

// onlyNeeds reports whether the tool requires no arguments but, if any, some of these.
func (t tool) onlyNeeds(names ...string) bool {
	return !slices.ContainsFunc(t.schema.Required, func(r string) bool { return !slices.Contains(names, r) })
}

// takes reports whether the tool takes a text by that name.
func (t tool) takes(name string) bool { return t.schema.Properties[name].is("string") }

// weather asks for the weather, where there is a tool for it that takes what was asked.
func (r outside) weather(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, isForecast)
	if !ok {
		return providers.Delta{}, false
	}
	arguments := map[string]any{}
	if place := original(cmp.Or(in.slots["place"], in.slots["city"]), r.said); place != "" {
		i := slices.IndexFunc([]string{"city", "location", "place"}, t.takes)
		if i < 0 {
			return providers.Delta{}, false
		}
		arguments[[]string{"city", "location", "place"}[i]] = place
	}
	if day := r.weatherDay(in); day != "" && !isToday(day) {
		if !t.takes("day") {
			return providers.Delta{}, false
		}
		arguments["day"] = day
	}
	if in.about != "" && t.takes("about") {
		arguments["about"] = in.about
	}
	if slices.ContainsFunc(t.schema.Required, func(name string) bool { return arguments[name] == nil }) {
		return providers.Delta{}, false
	}
	return r.call(t, arguments)
}

// weatherDay returns the words for the day that the weather is asked of, also where a time of that day was said.
func (r outside) weatherDay(in intent) string {
	if day := trimDay(cmp.Or(in.slots["day"], in.slots["day2"])); day != "" {
		return day
	}
	now := r.options.Now().In(r.zone)
	due, _, err := spoken.When(in.slots["when"], now)
	if err != nil || due.Format(time.DateOnly) == now.Format(time.DateOnly) || in.slots["when"] == "" {
		return ""
	}
	return due.Format(time.DateOnly)
}

// isWeather reports whether the day that the weather is asked of can be read, and whether it is asked of one place and one day.
func (in intent) isWeather(now time.Time) bool {
	for _, slot := range []string{"day", "day2"} {
		if words := trimDay(in.slots[slot]); words != "" && !isToday(words) {
			if _, ok := lunar.FindAll(words, now); !ok {
				return false
			}
		}
	}
	if _, day := lunar.FindAll(in.slots["city"], now); day || isToday(in.slots["city"]) {
		return false
	}
	for word := range strings.FieldsSeq(in.slots["city"]) {
		if slices.Contains([]string{"today", "tomorrow", "tonight", "please", "now", "like", "the", "be", "going", "weekend", "week", "my", "for", "on", "this", "next", "outside", "out"}, word) {
			return false
		}
	}
	return in.slots["day"] == "" || in.slots["day2"] == ""
}

// isToday reports whether words mean this day, of which tools tell when none is named.
func isToday(words string) bool {
	return slices.Contains([]string{"today", "todays", "now", "tonight", "this evening", "今天", "今儿", "今儿个", "今日", "现在", "今晚", "今夜", "这会儿", "目前", "眼下"}, words)
}

// news asks for headlines.
func (r outside) news(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, isNews)
	query := original(in.slots["query"], r.said)
	if !ok || query != "" && !t.takes("query") {
		return providers.Delta{}, false
	}
	if query == "" {
		return r.call(t, nil)
	}
	return r.call(t, map[string]any{"query": query})
}

// details asks for what is behind a headline.
func (r outside) details(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool { return t.has("news") && t.has("details", "detail") && t.free() })
	if !ok {
		return providers.Delta{}, false
	}
	if n := ordinal(in.slots["ordinal"]); n > 0 {
		return r.call(t, map[string]any{"number": n})
	}
	return r.call(t, map[string]any{"words": original(in.slots["query"], r.said)})
}

// isQuery reports whether words may be what news are about, or what is searched for. "": nothing was said.
func isQuery(words string) bool {
	first, _, _ := strings.Cut(words, " ")
	return !slices.Contains([]string{
		"the", "some", "any", "me", "us", "today", "todays", "latest", "could", "can", "please", "give", "tell", "read", "it", "that", "this", "more", "no", "my", "is", "good", "bad", "in",
		"最新", "最近", "今天", "今日", "的", "一下", "一点", "点", "些", "个", "这", "那", "一条", "几条",
	}, first)
}

// ordinal reads 第二条, the second, number 3; 0: it is none.
func ordinal(words string) int {
	words = strings.NewReplacer("number ", "", "story ", "", "headline ", "", "item ", "", " one", "", " story", "", " headline", "", "第", "", "条", "", "个", "", "则", "", "篇", "").Replace(words)
	for i, word := range strings.Fields("first second third fourth fifth sixth seventh eighth ninth tenth") {
		if word == words {
			return i + 1
		}
	}
	n, _ := spoken.Number(words)
	return n
}

// search searches the web.
func (r outside) search(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, isSearch)
	if !ok {
		return providers.Delta{}, false
	}
	return r.call(t, map[string]any{"query": original(in.slots["query"], r.said)})
}

// quoted says what others say, as tools of the world give it: headlines, or what was found first.
func (r outside) quoted(raw string) (providers.Delta, bool) {
	var told struct {
		Headlines []struct {
			Number int    `json:"number"`
			Title  string `json:"title"`
		} `json:"headlines"`
		Results []struct {
			Site string `json:"site"`
			Text string `json:"text"`
		} `json:"results"`
		Text string `json:"text"`
	}
	if json.Unmarshal([]byte(raw), &told) != nil {
		return providers.Delta{}, false
	}
	switch {
	case len(told.Headlines) > 0:
		words := ""
		for _, h := range told.Headlines {
			words = text.Join(words, r.lang.Pick("第"+strconv.Itoa(h.Number)+"条，", strconv.Itoa(h.Number)+". ")+strings.TrimRight(h.Title, ".。")+r.lang.Pick("。", "."))
		}
		return providers.Delta{Text: words}, true
	case len(told.Results) > 0:
		return r.text(phraseFound, "site", told.Results[0].Site, "text", text.Cut(told.Results[0].Text, maxQuoted))
	case told.Text != "":
		return providers.Delta{Text: told.Text}, true
	}
	return providers.Delta{}, false
}

// maxQuoted is how much is read aloud of a page, in bytes.
const maxQuoted = 600
