package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"xiaozhi/internal/account"
	"xiaozhi/internal/routine"
)

// counting is a doer that counts.
type counting struct{ n atomic.Int64 }

func (c *counting) Do(context.Context, routine.Routine, routine.Run) error {
	c.n.Add(1)
	return nil
}

// TestRoutinesOfPrograms: who may have what done at times and after events: owners all, others what is said on their own devices; nobody
// sees or changes what is not theirs.
func TestRoutinesOfPrograms(t *testing.T) {
	t.Parallel()
	n, done := 0, &counting{}
	book := routine.New(t.Context(), routine.Options{Doer: done, NewID: func() string { n++; return "r" + string(rune('0'+n)) }})
	t.Cleanup(book.Close)
	if _, _, err := book.Add(t.Context(), routine.Routine{Source: routine.ByVoice, Device: "c", Definition: routine.Definition{To: "c", When: "every day at 7", Say: "of ben"}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := book.Add(t.Context(), routine.Routine{Source: routine.ByVoice, Device: "a", Definition: routine.Definition{To: "a", When: "every day at 7", Say: "of anna"}}); err != nil {
		t.Fatal(err)
	}
	as := func(p account.Person) func(pattern, body string) *httptest.ResponseRecorder {
		_, ask, _ := rigWith(t, p, book)
		return ask
	}
	anna, ben := as(account.Person{ID: "anna", Name: "anna", Role: account.Member}), as(account.Person{ID: "ben", Name: "ben", Role: account.Member})
	owner := as(account.Person{ID: "olga", Name: "olga", Role: account.Owner})
	program := as(account.Person{ID: "anna", Name: "anna", Role: account.Member, Scopes: []account.Scope{account.Say, account.Read}})
	const all, one = "/api/v1/routines", "/api/v1/routines/"
	for _, c := range []struct {
		ask           func(pattern, body string) *httptest.ResponseRecorder
		pattern, body string
		code          int
		holds         string
	}{
		{anna, "POST " + all, `{"name":"day","to":"kitchen","when":"every morning at 7","prompt":"the weather","late":"30m"}`, 201, `"id":"r3"`},
		{anna, "POST " + all, `{"to":"c","when":"every day at 7","say":"x"}`, 404, "api/nobody"},
		{anna, "POST " + all, `{"to":"a","when":"every day at 7","tool":{"name":"x"}}`, 403, "account/forbidden"},
		{anna, "POST " + all, `{"to":"a","on":{"tool":"*"},"say":"{event}"}`, 403, "account/forbidden"},
		{anna, "POST " + all, `{"to":"here","on":{"server":"home","resource":"x"},"say":"{event}"}`, 403, "account/forbidden"},
		{program, "POST " + all, `{"to":"a","when":"every day at 7","say":"x","priority":"urgent"}`, 403, "account/forbidden"},
		{anna, "POST " + all, `{"to":"a","when":"soonish","say":"x"}`, 400, "看不懂"},
		{anna, "POST " + all, `{"to":"a","when":"every day at 7","say":"x","late":"1s"}`, 400, "routine/late"},
		{anna, "POST " + all, `{"to":"a","when":"every day at 7","words":"x"}`, 400, "api/body"},
		{anna, "POST " + all, `{"to":"a","when":"every day at 7","say":"x","late":5}`, 400, "api/body"},
		{owner, "POST " + all, `{"to":"all","when":"every day at 7","tool":{"name":"x"}}`, 201, `"id":"r5"`},
		{anna, "GET " + one + "r3", "", 200, `"due":"`}, {anna, "GET " + one + "r2", "", 200, "of anna"}, {anna, "GET " + one + "r1", "", 404, "routine/none"},
		{ben, "GET " + one + "r3", "", 404, "routine/none"}, {ben, "DELETE " + one + "r3", "", 404, "routine/none"}, {ben, "POST " + one + "r3/run", "", 404, "routine/none"},
		{ben, "PUT " + one + "r3", `{"to":"c","when":"every day at 8","say":"x"}`, 404, "routine/none"}, {owner, "GET " + one + "r3", "", 200, `"by":"anna"`},
		{anna, "PUT " + one + "r2", `{"to":"b","when":"every day at 8","say":"x"}`, 409, "routine/device"},
		{anna, "PUT " + one + "r3", `{"to":"b","when":"every day at 8","say":"x","disabled":true}`, 200, `"disabled":true`},
		{anna, "POST " + one + "r3/run", "", 202, `"id":"r3"`}, {anna, "DELETE " + one + "r2", "", 200, "of anna"}, {anna, "DELETE " + one + "r2", "", 404, "routine/none"},
		{anna, "GET " + all, "", 200, `[{"id":"r3"`}, {owner, "GET " + all, "", 200, `"id":"r1"`},
	} {
		if w := c.ask(c.pattern, c.body); w.Code != c.code || !strings.Contains(w.Body.String(), c.holds) {
			t.Errorf("%s %s: %d %s, want %d %s", c.pattern, c.body, w.Code, w.Body, c.code, c.holds)
		}
	}
	if w := anna("GET "+all, ""); strings.Contains(w.Body.String(), "r1") || strings.Contains(w.Body.String(), "r5") {
		t.Errorf("a member sees %s", w.Body)
	}
}

// TestHooks: who has the token of a hook begins it, by header or parameter; it is shown once, and who guesses is not listened to.
func TestHooks(t *testing.T) {
	t.Parallel()
	done := &counting{}
	book := routine.New(t.Context(), routine.Options{Doer: done, NewID: func() string { return "door" }})
	_, ask, h := rigWith(t, account.Person{ID: "anna", Name: "anna", Role: account.Member}, book)
	var made Routine
	if w := ask("POST /api/v1/routines", `{"to":"a","on":{"hook":true},"say":"It rings: {event}"}`); w.Code != http.StatusCreated || json.Unmarshal(w.Body.Bytes(), &made) != nil || made.Token == "" {
		t.Fatal(w.Code, w.Body)
	}
	if w := ask("GET /api/v1/routines/door", ""); strings.Contains(w.Body.String(), made.Token) || strings.Contains(w.Body.String(), `"token"`) {
		t.Errorf("the token is shown again: %s", w.Body)
	}
	call := func(from, path, token, body string) int {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/hooks/"+path, strings.NewReader(body))
		r.RemoteAddr = from + ":1"
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, c := range []struct {
		path, token, body string
		want              int
	}{
		{"door", made.Token, "ding", 202}, {"door?token=" + made.Token, "", "dong", 202}, {"door", "", "", 401}, {"door", "x" + made.Token, "", 401}, {"window", made.Token, "", 401},
		{"door", made.Token, strings.Repeat("x", maxHook+1), 400}, {"door", made.Token, "", 202}, {"door", made.Token, "", 429},
	} {
		if got := call("192.0.2.1", c.path, c.token, c.body); got != c.want {
			t.Errorf("%s with %q: %d, want %d", c.path, c.token, got, c.want)
		}
	}
	for range 30 {
		call("192.0.2.9", "door", "guess", "")
	}
	if a, b := call("192.0.2.9", "door", "guess", ""), call("192.0.2.1", "door", "guess", ""); a != 429 || b != 401 {
		t.Errorf("who guesses gets %d, others %d", a, b)
	}
	book.Close()
	if n := done.n.Load(); n != 3 {
		t.Errorf("it was begun %d times", n)
	}
}
