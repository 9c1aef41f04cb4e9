package local_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/local/web"
	"xiaozhi/mcp/router"
)

// site is a page of a service in this process.
func site(t *testing.T, path, result string, answer http.HandlerFunc) *web.Page {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	p, err := web.New(web.Options{URL: server.URL + path, Result: result})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWeather(t *testing.T) {
	status := http.StatusOK
	page := site(t, "/{city}?lang={language}", "{now.text} {now.temp}°C", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"now":{"text":%q,"temp":21}}`, r.URL.Path+" "+r.FormValue("lang"))
	})
	if err := local.CheckWeather(page); err != nil {
		t.Error(err)
	}
	box := beside(t, nil, local.Options{World: local.World{Weather: local.Outside{Page: page, City: "上海"}}})
	for _, test := range []struct{ language, arguments, want string }{
		{"zh", `{"city":"北京"}`, "/北京 zh 21°C"},
		{"en", `{}`, "/上海 en 21°C"},
		{"", `{"city":" "}`, "/上海 zh 21°C"},
	} {
		if r := call(t, box, test.language, "get_weather", test.arguments); r.Action != mcp.ActionTypeReqLLM || r.Result != test.want {
			t.Errorf("%s: %+v, want %s", test.arguments, r, test.want)
		}
	}
	status = http.StatusForbidden
	for language, want := range map[string]string{"zh": "查询失败：服务回答了 HTTP 403", "en": "the service could not be asked: the service answered 403 Forbidden"} {
		if r := call(t, box, language, "get_weather", ``); r.Action != mcp.ActionTypeError || r.Result != want {
			t.Errorf("a refusal: %+v, want %s", r, want)
		}
	}
	if r := call(t, box, "zh", "get_weather", `{"city":".."}`); r.Action != mcp.ActionTypeError {
		t.Errorf("..: %+v", r)
	}
	nowhere := beside(t, nil, local.Options{World: local.World{Weather: local.Outside{Page: page}}})
	if r := call(t, nowhere, "en", "get_weather", ``); r.Result != "which city? give city" {
		t.Errorf("no city: %+v", r)
	}
}

func TestNews(t *testing.T) {
	feed := `<rss><channel><item><title>Rain</title></item><item><title>Sun</title></item></channel></rss>`
	page := site(t, "/rss", "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, feed) })
	box := beside(t, nil, local.Options{World: local.World{News: local.Outside{Page: page}}})
	if r := call(t, box, "zh", "get_news", `{"query":"x"}`); r.Result != "1. Rain\n2. Sun" {
		t.Errorf("%+v", r)
	}
	search := site(t, "/rss?q={query}", "", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.ReplaceAll(feed, "Sun", r.FormValue("q")))
	})
	if r := call(t, beside(t, nil, local.Options{World: local.World{News: local.Outside{Page: search}}}), "zh", "get_news", `{"query":"足球"}`); r.Result != "1. Rain\n2. 足球" {
		t.Errorf("%+v", r)
	}
}

// TestNotConfigured: what is not configured is not offered.
func TestNotConfigured(t *testing.T) {
	if got := offered(beside(t, nil, local.Options{}), "get_weather", "get_news", "play_music", "change_role"); got != "" {
		t.Errorf("offered %s", got)
	}
	page := site(t, "/{planet}", "", func(http.ResponseWriter, *http.Request) {})
	if err := local.CheckNews(page); err == nil || err.Error() != "the url holds {planet}, but known are {query}, {language}" {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestSetPages: pages come, change and go while the source runs.
func TestSetPages(t *testing.T) {
	page := func(text string) local.Outside {
		return local.Outside{Page: site(t, "/{city}", "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }), City: "x"}
	}
	s := local.New(local.Options{World: local.World{News: page("old news")}})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	box := router.New(router.Options{}, s)
	defer box.Close()
	before := len(s.GetAvailableTools())
	s.SetWorld(local.World{Weather: page("rain")})
	if got := offered(box, "get_weather", "get_news"); got != "get_weather" || len(s.GetAvailableTools()) != before {
		t.Errorf("offered %s, %d tools", got, len(s.GetAvailableTools()))
	}
	if r := call(t, box, "en", "get_weather", `{}`); r.Result != "rain" {
		t.Errorf("%+v", r)
	}
	s.SetWorld(local.World{Weather: page("sun")})
	if r := call(t, box, "en", "get_weather", `{}`); r.Result != "sun" {
		t.Errorf("%+v", r)
	}
}
