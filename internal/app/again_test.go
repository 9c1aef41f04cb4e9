package app

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/settings"
	"xiaozhi/store"
)

// aged makes all sessions of ann those of somebody who showed the password an hour ago.
func aged(t *testing.T, a *App) {
	t.Helper()
	all, err := a.accounts.Sessions(t.Context(), "ann")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, s := range all {
		s.ProvedAt = time.Now().Add(-time.Hour)
		if err := a.stored.Sessions.End(t.Context(), s.Hash); err != nil {
			t.Fatal(err)
		}
		if err := a.stored.Sessions.Add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// changeable is a program whose settings people can change.
func changeable(t *testing.T) (*App, http.Handler) {
	t.Helper()
	a, _ := startOn(t, t.TempDir(), plainFile, nil)
	t.Cleanup(a.Close)
	h, err := a.routes()
	if err != nil {
		t.Fatal(err)
	}
	return a, h
}

// TestPasswordAgain: whoever showed the password an hour ago is asked for it before they type a key or take things away,
// at the form itself, which keeps what was typed. Everything else goes on.
func TestPasswordAgain(t *testing.T) {
	cloud := lockedCloud(t)
	a, h := changeable(t)
	c := owned(t, a, h)
	c.expect("/console/services/add/openai", nil, 200, "api_key")
	if body := c.ask("/console/services/add/openai", nil).Body.String(); strings.Contains(body, "again-password") {
		t.Error("the password is asked for right after it was shown")
	}
	aged(t, a)

	const page = "/console/services/add/openai"
	c.expect(page, nil, 200, `name="again-password"`)
	c.expect("/console/settings/-/import", nil, 200, `name="again-password"`)
	c.expect("/console/tools/servers/edit", nil, 200, `name="again-password"`)
	form := url.Values{"do": {"test"}, "base": {"0"}, "name": {"mine"}, "set.base_url": {cloud.URL()}, "set.api_key": {pageKey}, "join": {"llm"}}
	for _, do := range []string{"test", "save"} {
		form.Set("do", do)
		w := c.ask(page, form)
		if body := w.Body.String(); w.Code != 422 || !strings.Contains(body, "enter your password again here") || strings.Contains(body, pageKey) {
			t.Errorf("a key, %s: %d\n%.3000s", do, w.Code, body)
		}
	}
	w := c.ask(page, form)
	form.Set("draft", match(t, draftID, w.Body.String()))
	form.Del("set.api_key")
	form.Set("do", "test")
	form.Set("again-password", "a wrong one")
	c.expect(page, form, 422, `id="e-again-password"`)
	if n := cloud.Total(); n > 0 {
		t.Errorf("the service was asked %d times", n)
	}
	aged(t, a)
	c.expect("/console/settings/-/import", url.Values{"base": {"0"}, "long-document": {"providers: {mine: {type: openai, api_key: " + pageKey + "}}"}}, 422, `id="e-again-password"`)
	c.expect("/console/tools/servers/edit", url.Values{"do": {"save"}, "name": {"s"}, "type": {"http"}, "url": {"http://127.0.0.1:9/mcp"}, "headers": {"Authorization: " + pageKey}}, 422, `id="e-again-password"`)
	for _, path := range []string{"/console/settings/-/export", "/console/bundle"} {
		c.expect(path, nil, 303, "/console/prove?to="+url.QueryEscape(path))
	}

	form.Set("again-password", "correct horse battery")
	c.expect(page, form, 200, "It is 23 degrees.")
	c.expect("/console/settings/-/export", nil, 200, "llm")
	c.expect("/console/bundle", nil, 200, "PK")
}

// TestPasswordAgainForPrograms: the routes for programs ask a browser's session for the password as the pages do, and let a
// token do what its scopes say.
func TestPasswordAgainForPrograms(t *testing.T) {
	t.Parallel()
	a, h := changeable(t)
	c := owned(t, a, h)
	aged(t, a)
	token, err := a.accounts.NewToken(t.Context(), account.Actor{Name: "ann"}, "ann", account.NewToken{Label: "backup", Scopes: []account.Scope{account.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string, by func(*http.Request)) int {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host, r.RemoteAddr = "127.0.0.1:8000", "127.0.0.1:9"
		r.Header.Set("Content-Type", "application/json")
		by(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	program := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	browser := func(r *http.Request) {
		r.Header.Set("Origin", "http://127.0.0.1:8000")
		for _, cookie := range c.cookies {
			r.AddCookie(cookie)
		}
	}
	typed := `{"base":0,"edits":[{"path":["providers","mine"],"value":{"type":"openai","api_key":"` + pageKey + `"}}]}`
	for _, one := range []struct {
		method, path, body string
		browser, program   int
	}{
		{"GET", settings.Path, "", 200, 200},
		{"GET", settings.Path + "/export", "", 401, 200},
		{"GET", "/console/bundle", "", 303, 200},
		{"POST", settings.Path + "/plan", typed, 401, 200},
		{"POST", settings.Path + "/plan", `{"base":0,"edits":[{"path":["voice","wpm"],"value":1}]}`, 400, 400},
		{"POST", "/api/v1/users", `{"name":"x"}`, 401, 403},
		{"POST", "/api/v1/me/tokens", `{"name":"x"}`, 401, 403},
		{"DELETE", "/api/v1/devices/24:6f:28:aa:10:02", "", 401, 403},
	} {
		if got := ask(one.method, one.path, one.body, browser); got != one.browser {
			t.Errorf("%s %s by a browser: %d, not %d", one.method, one.path, got, one.browser)
		}
		if got := ask(one.method, one.path, one.body, program); got != one.program {
			t.Errorf("%s %s by a program: %d, not %d", one.method, one.path, got, one.program)
		}
	}
}

// TestAuditSaysFromWhere: what people do with settings, services and secrets is kept with the address that they ask from.
func TestAuditSaysFromWhere(t *testing.T) {
	a, h := changeable(t)
	c := owned(t, a, h)
	planned := func(edits string) string {
		w := c.ask("/console/settings/-/import", url.Values{"base": {strconv.Itoa(a.settings.Revision())}, "long-document": {edits}})
		if w.Code != http.StatusSeeOther {
			t.Fatalf("%d\n%.2000s", w.Code, w.Body)
		}
		return w.Header().Get("Location")
	}
	c.expect(planned("voice: {idle_close: 1m10s}\nproviders: {mine: {type: openai, base_url: http://127.0.0.1:9/v1, api_key: "+pageKey+"}}"), url.Values{"do": {"apply"}}, 303, "/console/settings")
	c.expect("/console/settings/-/revisions", url.Values{"revision": {"1"}}, 303, "/console/settings/-/revisions")
	all, err := a.accounts.Audit(t.Context(), store.Page{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, act := range all {
		seen[act.Act] = act.Remote
	}
	for _, act := range []string{"settings.apply", "settings.undo", "secret.set"} {
		if seen[act] != "127.0.0.1" {
			t.Errorf("%s: from %q; %v", act, seen[act], seen)
		}
	}
}

// TestUnknownChoices: a parameter of a query that has few values is refused with them, by programs and by people in their
// language, and what was typed is not repeated. What can be typed is answered.
func TestUnknownChoices(t *testing.T) {
	a, h := changeable(t)
	c := owned(t, a, h)
	for path, values := range map[string]string{
		"/api/v1/tools?source=":                               "local, homeassistant, file, device, light, iot, external",
		"/api/v1/tools/calls?source=":                         "local, homeassistant, file, device, light, iot, external",
		"/api/v1/tools/calls?failed=":                         "0, 1",
		"/api/v1/doctor/devices/24:6f:28:aa:10:02?raw=":       "ota, answer, activation",
		"/api/v1/settings/revisions?before=":                  "",
		"/api/v1/talks?failed=":                               "failed",
		"/console/tools?source=":                              "local, homeassistant, file, device, light, iot, external",
		"/console/tools/calls?source=":                        "local, homeassistant, file, device, light, iot, external",
		"/console/tools/calls?failed=":                        "0, 1",
		"/console/log/server?level=":                          "warn, error",
		"/console/doctor/24:6f:28:aa:10:02?sent=":             "ota, answer, activation",
		"/console/doctor/24:6f:28:aa:10:02?lang=zh&sent=":     "只能是：ota, answer, activation",
		"/console/log/server?lang=en&level=info%22%3E&level=": "The parameter level is one of: warn, error.",
	} {
		w := c.ask(path+"%3Cimg%20src=x%3E", nil)
		if body := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(body, values) || strings.Contains(body, "img src=x") {
			t.Errorf("%s: %d\n%.1500s", path, w.Code, body)
		}
		if w := c.ask(path, nil); strings.Count(path, "level=") < 2 && w.Code == http.StatusBadRequest {
			t.Errorf("%s: %d with nothing asked for", path, w.Code)
		}
	}
	for _, path := range []string{"/api/v1/tools?source=local", "/api/v1/tools/calls?failed=1&source=external:maps", "/console/tools?source=iot", "/console/tools/calls?failed=1", "/console/log/server?level=error", "/api/v1/settings/revisions?before=5"} {
		c.expect(path, nil, 200, "")
	}
}
