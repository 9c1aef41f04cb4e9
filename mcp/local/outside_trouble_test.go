package local_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/local/web"
)

// TestServiceTrouble: what the owner hears when the weather cannot be told says
// what happened, in the language of the turn, and neither URL nor key.
func TestServiceTrouble(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		zh, en string
	}{
		"a page for people": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html><body>Log in</body></html>") }, "查询失败：服务的回答看不懂", "meant for people"},
		"another JSON":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error":"bad key"}`) }, "查询失败：服务的回答看不懂", "does not hold what is configured"},
		"too long":          {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 300<<10)) }, "查询失败：服务的回答太长了", "over 256 KiB"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}, "查询失败：服务的地址不能访问", "redirected to another host"},
		"no key":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "查询失败：服务回答了 HTTP 401", "401 Unauthorized"},
		"late":     {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "查询失败：服务没有回答", "the service could not be asked"},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "查询失败：服务没有回答", "the service could not be asked"},
	} {
		server := httptest.NewServer(test.answer)
		patience := time.Duration(0) // the usual
		if name == "late" {
			patience = 50 * time.Millisecond
		}
		page, err := web.New(web.Options{URL: server.URL + "/{city}?key=secret", Result: "{temp}", Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		box := beside(t, nil, local.Options{World: local.World{Weather: local.Outside{Page: page}}})
		for language, want := range map[string]string{"zh": test.zh, "en": test.en} {
			r := call(t, box, language, "get_weather", `{"city":"北京"}`)
			text := mcp.ResultText(r)
			if r.Action != mcp.ActionTypeError || !strings.Contains(text, want) || strings.Contains(text, "secret") || strings.Contains(text, "127.0.0.1") {
				t.Errorf("%s, %s: %s %s, want %s", name, language, r.Action, text, want)
			}
		}
		server.Close()
	}
}
