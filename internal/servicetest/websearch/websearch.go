// Package websearch is a fake of three services that search the web, on one address: SearXNG (GET /search), Tavily (POST
// /search) and Bocha (POST /v1/web-search).
package websearch

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/servicetest"
)

// Page is a page that is found by every query.
type Page struct{ Title, URL, Text, Date string }

// Fake is the server. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu    sync.Mutex
	pages []Page
}

// New starts the server.
func New(t testing.TB, pages ...Page) *Fake {
	t.Helper()
	f := &Fake{pages: pages}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// Find has these pages found from now on.
func (f *Fake) Find(pages ...Page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages = pages
}

func (f *Fake) found(most int) []Page {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pages[:min(most, len(f.pages))]
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	switch {
	case err != nil:
		f.Refuse(w, http.StatusBadRequest, `{}`)
	case r.URL.Path == "/search" && r.Method == http.MethodGet:
		f.searxng(w, r)
	case r.URL.Path == "/search" && r.Method == http.MethodPost:
		f.tavily(w, r, body)
	case r.URL.Path == "/v1/web-search" && r.Method == http.MethodPost:
		f.bocha(w, r, body)
	default:
		http.NotFound(w, r)
	}
}

func (f *Fake) send(w http.ResponseWriter, r *http.Request, answer any) {
	raw, _ := json.Marshal(answer) // it can be encoded
	f.Send(w, r, f.Fault(), servicetest.Reply{Type: "application/json", Body: raw, Broken: []byte(`{"results": [{"url": "ht`), Filler: []byte(" ")})
}

// searxng answers in JSON, unless the settings do not list that format: the wrong model.
func (f *Fake) searxng(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch fault := f.Fault(); {
	case fault == servicetest.RateLimited:
		f.Refuse(w, http.StatusTooManyRequests, "Too Many Requests", "Content-Type", "text/html")
		return
	case q.Get("format") != "json" || fault == servicetest.WrongModel:
		f.Refuse(w, http.StatusForbidden, "<!doctype html><title>403 Forbidden</title>", "Content-Type", "text/html; charset=utf-8")
		return
	case q.Get("q") == "":
		f.Refuse(w, http.StatusBadRequest, `{"error": "No query"}`)
		return
	}
	results := []map[string]any{}
	for i, p := range f.found(20) {
		results = append(results, map[string]any{
			"url": p.URL, "title": p.Title, "content": p.Text, "publishedDate": nullable(p.Date), "engine": "duckduckgo", "engines": []string{"duckduckgo"},
			"parsed_url": []string{"https", "", "", "", "", ""}, "template": "default.html", "positions": []int{i + 1}, "score": 1.0, "category": "general", "thumbnail": nil,
		})
	}
	f.send(w, r, map[string]any{
		"query": q.Get("q"), "number_of_results": 0, "results": results, "answers": []any{}, "corrections": []any{}, "infoboxes": []any{}, "suggestions": []any{}, "unresponsive_engines": [][]string{{"google", "timeout"}},
	})
}

// nullable is a text, or nothing for an empty one.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (f *Fake) tavily(w http.ResponseWriter, r *http.Request, body []byte) {
	var q struct {
		Query string `json:"query"`
		Most  int    `json:"max_results"`
		Depth string `json:"search_depth"`
	}
	err := json.Unmarshal(body, &q)
	switch fault := f.Fault(); {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || fault == servicetest.WrongKey:
		f.Refuse(w, http.StatusUnauthorized, `{"detail":{"error":"Unauthorized: missing or invalid API key."}}`)
	case fault == servicetest.NoMoney:
		f.Refuse(w, 432, `{"detail":{"error":"This request exceeds your plan's set usage limit. Please upgrade your plan or contact support@tavily.com"}}`)
	case fault == servicetest.RateLimited:
		f.Refuse(w, http.StatusTooManyRequests, `{"detail":{"error":"Your request has been blocked due to excessive requests. Please reduce the rate of requests."}}`)
	case err != nil || q.Query == "" || len(q.Query) > 400 || q.Most < 0 || q.Most > 20 || q.Depth != "basic" && q.Depth != "advanced" && q.Depth != "":
		f.Refuse(w, http.StatusBadRequest, `{"detail":{"error":"Invalid request."}}`)
	default:
		results := []map[string]any{}
		for _, p := range f.found(q.Most) {
			results = append(results, map[string]any{"url": p.URL, "title": p.Title, "content": p.Text, "score": 0.9, "raw_content": nil})
		}
		f.send(w, r, map[string]any{"query": q.Query, "follow_up_questions": nil, "answer": nil, "images": []any{}, "results": results, "response_time": 1.2, "request_id": "r"})
	}
}

func (f *Fake) bocha(w http.ResponseWriter, r *http.Request, body []byte) {
	var q struct {
		Query     string `json:"query"`
		Count     int    `json:"count"`
		Summary   bool   `json:"summary"`
		Freshness string `json:"freshness"`
	}
	err := json.Unmarshal(body, &q)
	refuse := func(status int, message string) {
		f.Refuse(w, status, fmt.Sprintf(`{"code":"%d","message":%q,"log_id":"c66aac17eaf1ce06"}`, status, message))
	}
	switch fault := f.Fault(); {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || fault == servicetest.WrongKey:
		refuse(http.StatusUnauthorized, "Invalid API KEY")
	case fault == servicetest.NoMoney:
		refuse(http.StatusForbidden, "You do not have enough money")
	case fault == servicetest.RateLimited:
		refuse(http.StatusTooManyRequests, "You have reached the request limit")
	case err != nil || q.Query == "" || q.Count < 1 || q.Count > 50:
		refuse(http.StatusBadRequest, "Missing parameter query")
	default:
		var values []map[string]any
		for i, p := range f.found(q.Count) {
			v := map[string]any{
				"id": fmt.Sprintf("https://api.bochaai.com/v1/#WebPages.%d", i), "name": p.Title, "url": p.URL, "displayUrl": p.URL, "snippet": strings.ToUpper(p.Text),
				"siteName": "site", "datePublished": nullable(p.Date), "language": nil, "isFamilyFriendly": nil,
			}
			if q.Summary {
				v["summary"] = p.Text
			}
			values = append(values, v)
		}
		f.send(w, r, map[string]any{"code": 200, "log_id": "c66aac17eaf1ce06", "msg": nil, "data": map[string]any{
			"_type": "SearchResponse", "queryContext": map[string]any{"originalQuery": q.Query},
			"webPages": map[string]any{"webSearchUrl": "https://bochaai.com/search?q=x", "totalEstimatedMatches": 100, "value": values, "someResultsRemoved": false},
			"images":   nil, "videos": nil,
		}})
	}
}
