package websearch

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func TestFake(t *testing.T) {
	f := New(t, Page{"Tea", "https://example.org/tea", "green", "2026-11-01T00:00:00"})
	for _, test := range []struct{ method, path, body, key, want string }{
		{"GET", "/search?q=tea&format=json", "", "", `"content":"green"`},
		{"GET", "/search?q=tea", "", "", "403 Forbidden"},
		{"GET", "/search?format=json", "", "", "No query"},
		{"POST", "/search", `{"query":"tea","max_results":3}`, servicetest.Key, `"content":"green"`},
		{"POST", "/search", `{"query":"tea"}`, "x", "invalid API key"},
		{"POST", "/v1/web-search", `{"query":"tea","count":3,"summary":true}`, servicetest.Key, `"summary":"green"`},
		{"POST", "/v1/web-search", `{"query":"tea","count":3}`, "", "Invalid API KEY"},
		{"POST", "/v1/web-search", `{"query":"tea","count":0}`, servicetest.Key, "Missing parameter"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, f.URL()+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+test.key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), test.want) {
			t.Errorf("%s %s %s: %s", test.method, test.path, test.body, body)
		}
	}
}
