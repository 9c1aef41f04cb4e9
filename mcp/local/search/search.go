// Package search searches the web: by SearXNG, Tavily or Bocha. What pages say is cut, freed of everything that does not
// belong into a text, and told as what somebody else says.
package search

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"xiaozhi/internal/text"
	"xiaozhi/mcp/local/web"
)

// Kind names a service.
type Kind string

// The services.
const (
	SearXNG Kind = "searxng" // https://docs.searxng.org/dev/search_api.html
	Tavily  Kind = "tavily"  // https://docs.tavily.com/documentation/api-reference/endpoint/search
	Bocha   Kind = "bocha"   // https://open.bochaai.com
)

// Kinds lists the services.
func Kinds() []Kind { return []Kind{SearXNG, Tavily, Bocha} }

// Address returns the usual address of a service, "" of one that has none.
func (k Kind) Address() string {
	return map[Kind]string{Tavily: "https://api.tavily.com", Bocha: "https://api.bochaai.com"}[k]
}

const (
	maxQuery   = 300 // bytes; Tavily takes 400
	maxTitle   = 120
	maxText    = 900
	maxResults = 10
)

// Options configure a [Service].
type Options struct {
	Kind    Kind
	Base    string // "": the usual address, which SearXNG does not have
	Key     string // SearXNG needs none
	Results int    // 0: 3; 10 at most
	Timeout time.Duration
}

// Service searches. Search may be called at the same time.
type Service struct {
	options Options
	client  *web.Client
}

// Result is a page that was found.
type Result struct {
	Title string `json:"title"`
	Site  string `json:"site"` // its host, without www.
	URL   string `json:"url"`
	Text  string `json:"text"` // the part of it that fits
	Date  string `json:"date,omitempty"`
}

var (
	// ErrFormat says that a SearXNG server does not answer programs.
	ErrFormat = errors.New("this SearXNG server does not answer programs: its settings.yml must list json under search.formats")
	// ErrQuery says that there is nothing to search for.
	ErrQuery = errors.New("there is nothing to search for")
	// ErrKey says that the service does not take the key.
	ErrKey = errors.New("the search service does not take the key")
	// ErrMoney says that no search is left of those that were paid.
	ErrMoney = errors.New("the account of the search service has no searches left")
)

// New checks the options.
func New(o Options) (*Service, error) {
	o.Results = min(max(cmp.Or(o.Results, 3), 1), maxResults)
	o.Base = cmp.Or(o.Base, o.Kind.Address())
	headers := map[string]string{}
	switch {
	case o.Base == "":
		return nil, fmt.Errorf("%s needs a url", cmp.Or(o.Kind, "a service that is not named"))
	case o.Kind != SearXNG && o.Key == "":
		return nil, fmt.Errorf("%s needs an api_key", o.Kind)
	case o.Key != "":
		headers["Authorization"] = "Bearer " + o.Key
	}
	client, err := web.NewClient(web.ClientOptions{Base: o.Base, Headers: headers, Timeout: o.Timeout, Most: 2 << 20})
	if err != nil {
		return nil, err
	}
	return &Service{o, client}, nil
}

// Kind returns which service is asked.
func (s *Service) Kind() Kind { return s.options.Kind }

// Search returns what fits best, at most so many as the options say. The errors are those of [web.Client] and of this package.
func (s *Service) Search(ctx context.Context, query string, lang text.Lang) ([]Result, error) {
	query = web.Cut(clean(query), maxQuery)
	if query == "" {
		return nil, ErrQuery
	}
	search := map[Kind]func(context.Context, string, text.Lang) ([]Result, error){SearXNG: s.searxng, Tavily: s.tavily, Bocha: s.bocha}[s.options.Kind]
	found, err := search(ctx, query, lang)
	if err != nil {
		return nil, s.explain(err)
	}
	var kept []Result
	for _, r := range found {
		if r = r.clean(); r.Title+r.Text != "" && r.Site != "" && len(kept) < s.options.Results {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

// explain says what is wrong, where the service's answer tells.
func (s *Service) explain(err error) error {
	status, refused := errors.AsType[web.StatusError](err)
	switch {
	case !refused:
		return err
	case status == 403 && s.options.Kind == SearXNG:
		return ErrFormat
	case status == 401:
		return ErrKey
	case status == 432, status == 433, status == 403 && s.options.Kind == Bocha, status == 402:
		return ErrMoney
	}
	return err
}

// searxng asks a SearXNG server. It may know an answer by itself.
func (s *Service) searxng(ctx context.Context, query string, lang text.Lang) ([]Result, error) {
	var found struct {
		Results []struct {
			URL       string `json:"url"`
			Title     string `json:"title"`
			Content   string `json:"content"`
			Published string `json:"publishedDate"`
		} `json:"results"`
		Infoboxes []struct {
			Name    string `json:"infobox"`
			Content string `json:"content"`
			ID      string `json:"id"`
		} `json:"infoboxes"`
	}
	language := lang.Pick("zh-CN", cmp.Or(string(lang.Base()), "en"))
	err := s.client.JSON(ctx, web.Request{Path: "/search", Query: url.Values{"q": {query}, "format": {"json"}, "language": {language}, "safesearch": {"1"}}}, &found)
	if err != nil {
		return nil, err
	}
	var all []Result
	for _, b := range found.Infoboxes {
		all = append(all, Result{Title: b.Name, URL: b.ID, Text: b.Content})
	}
	for _, r := range found.Results {
		all = append(all, Result{Title: r.Title, URL: r.URL, Text: r.Content, Date: r.Published})
	}
	return all, nil
}

// tavily asks Tavily.
func (s *Service) tavily(ctx context.Context, query string, _ text.Lang) ([]Result, error) {
	var found struct {
		Results []struct {
			URL       string `json:"url"`
			Title     string `json:"title"`
			Content   string `json:"content"`
			Published string `json:"published_date"`
		} `json:"results"`
	}
	err := s.client.JSON(ctx, web.Request{Path: "/search", Body: map[string]any{"query": query, "max_results": s.options.Results, "search_depth": "basic"}}, &found)
	if err != nil {
		return nil, err
	}
	var all []Result
	for _, r := range found.Results {
		all = append(all, Result{Title: r.Title, URL: r.URL, Text: r.Content, Date: r.Published})
	}
	return all, nil
}

// bocha asks Bocha. It refuses with a code in its answer, too.
func (s *Service) bocha(ctx context.Context, query string, _ text.Lang) ([]Result, error) {
	var found struct {
		Code json.Number `json:"code"`
		Data struct {
			Pages struct {
				Value []struct {
					Name      string `json:"name"`
					URL       string `json:"url"`
					Snippet   string `json:"snippet"`
					Summary   string `json:"summary"`
					Published string `json:"datePublished"`
				} `json:"value"`
			} `json:"webPages"`
		} `json:"data"`
	}
	err := s.client.JSON(ctx, web.Request{Path: "/v1/web-search", Body: map[string]any{"query": query, "count": s.options.Results, "summary": true, "freshness": "noLimit"}}, &found)
	if err != nil {
		return nil, err
	}
	if code, err := found.Code.Int64(); err != nil || code != 200 {
		return nil, web.StatusError(code)
	}
	var all []Result
	for _, v := range found.Data.Pages.Value {
		all = append(all, Result{Title: v.Name, URL: v.URL, Text: cmp.Or(v.Summary, v.Snippet), Date: v.Published})
	}
	return all, nil
}

// clean is a result with everything in its bounds. One whose address is none of the web has no site.
func (r Result) clean() Result {
	r.Title, r.Text = web.Cut(clean(r.Title), maxTitle), web.Cut(clean(r.Text), maxText)
	u, err := url.Parse(strings.TrimSpace(r.URL))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || len(r.URL) > 500 {
		r.URL = ""
		return r
	}
	r.URL, r.Site = u.String(), strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
	r.Date, _, _ = strings.Cut(clean(r.Date), "T")
	if _, err := time.Parse(time.DateOnly, r.Date); err != nil {
		r.Date = ""
	}
	return r
}

// clean drops markup, signs that nobody sees, and runs of space.
func clean(words string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.C, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, web.Bare(strings.ToValidUTF8(words, "")))), " ")
}
