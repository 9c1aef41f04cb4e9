package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/store"
)

// TestConversations: the pages show what was said as text, with its picture, and do what their buttons say, to who may.
func TestConversations(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, []string{"rules"}
	a, err := Build(t.Context(), cfg, Options{PasswordCost: cheap, Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	h, err := a.routes()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := a.stored.Devices.Commit(ctx, store.DeviceChange{Save: []store.Identity{{ID: "m", Address: "m", State: store.DevicePaired, FirstAt: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"c-1", "c-2"} {
		a.stored.Log.Put(&store.Entry{
			Conversation: store.Conversation{ID: "c", DeviceID: "m", BeganAt: time.Now()},
			Turn: store.Turn{
				ID: id, Seq: i + 1, At: time.Now(), Kind: "user", Cause: "done", Heard: "<img src=x onerror=alert(1)>{{.}}", Said: "It is nine.", E2E: 1500 * time.Millisecond,
				Spans: `{"zero":1,"end":"typed","marks":{"frame":1500}}`,
			},
			Calls: []store.Call{{ID: id + "x", At: time.Now(), Caller: "model", Name: "time.now", Source: "local", Kind: "query", Result: "<b>"}},
		})
	}
	if err := a.stored.Log.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	cookies := map[account.Role]*http.Cookie{}
	for _, role := range account.Roles() {
		name, password := "the-"+string(role), "correct horse battery"
		if err := a.accounts.Add(ctx, account.Actor{Name: "test", Via: account.ViaCommand}, account.NewUser{Name: name, Role: role, Password: password}); err != nil {
			t.Fatal(err)
		}
		secret, err := a.accounts.Login(ctx, name, account.Proof{Password: password}, account.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		cookies[role] = &http.Cookie{Name: "xiaozhi", Value: secret}
	}
	ask := func(role account.Role, path string, form ...string) *httptest.ResponseRecorder {
		method, body := http.MethodGet, url.Values{}
		for i := 0; i+1 < len(form); i += 2 {
			method = http.MethodPost
			body.Set(form[i], form[i+1])
		}
		r := httptest.NewRequest(method, "http://127.0.0.1:8000"+path, io.NopCloser(strings.NewReader(body.Encode())))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://127.0.0.1:8000")
		r.AddCookie(cookies[role])
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const list, one = "/console/conversations", "/console/conversations/c"
	for path, want := range map[string]string{
		list: `href="/console/conversations/c"`, list + "?text=nine&slower=1000&tool=time.now": `href="/console/conversations/c"`, list + "?failed=1": "No talk is like this",
		one: `class="wf"`, one + "?after=1": `id="turn-c-2"`,
	} {
		w := ask(account.Owner, path)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "<img src=x") {
			t.Errorf("%s: %d, want %s:\n%s", path, w.Code, want, w.Body)
		}
	}
	for path, want := range map[string]string{list + "?slower=soon": `role="alert"`, one + "?after=x": "no such place"} {
		if w := ask(account.Owner, path); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, want %s:\n%s", path, w.Code, want, w.Body)
		}
	}
	// An open page is told of a turn that comes.
	live := func(role account.Role) string {
		ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8000/console/events?on=talks,turns:c/2", nil)
		r.AddCookie(cookies[role])
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	a.stored.Log.Put(&store.Entry{
		Conversation: store.Conversation{ID: "c", DeviceID: "m", BeganAt: time.Now()},
		Turn:         store.Turn{ID: "c-3", Seq: 3, At: time.Now(), Kind: "user", Cause: "done", Heard: "and now?"},
	})
	if got := live(account.Owner); !strings.Contains(got, "turn-c-3") || strings.Contains(got, "turn-c-2") || !strings.Contains(got, "/console/conversations/c") {
		t.Errorf("the page was told\n%s", got)
	}
	if got := live(account.Member); strings.Contains(got, "turn-c-3") || strings.Contains(got, "/console/conversations/c") {
		t.Errorf("the page of somebody else was told\n%s", got)
	}
	if err := a.stored.DeleteTurn(ctx, "c-3"); err != nil {
		t.Error(err)
	}
	for role, want := range map[account.Role]int{account.Member: http.StatusForbidden, account.Viewer: http.StatusForbidden} {
		for _, w := range []*httptest.ResponseRecorder{ask(role, one), ask(role, one, "do", "delete")} {
			if w.Code != want {
				t.Errorf("a %s: %d", role, w.Code)
			}
		}
	}
	if w := ask(account.Member, list); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "conversations/c\"") {
		t.Errorf("a member sees the talks of others: %d", w.Code)
	}
	if w := ask(account.Owner, one, "do", "dance"); w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
	if w := ask(account.Owner, one, "do", "up", "turn", "nothing"); w.Code != http.StatusNotFound {
		t.Errorf("the turn of another talk: %d", w.Code)
	}
	for _, form := range [][]string{{"do", "keep"}, {"do", "down", "turn", "c-2"}, {"do", "delete-turn", "turn", "c-1"}} {
		if w := ask(account.Owner, one, form...); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), one) {
			t.Errorf("%q: %d %v", form, w.Code, w.Header())
		}
	}
	if w := ask(account.Owner, one+"?undo=c-1"); strings.Contains(w.Body.String(), `id="turn-c-1"`) || !strings.Contains(w.Body.String(), `name="turn" value="c-1"`) {
		t.Errorf("a deleted turn is shown, or cannot be brought back:\n%s", w.Body)
	}
	if w := ask(account.Owner, one, "do", "undo", "turn", "c-1"); w.Header().Get("Location") != one {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(account.Owner, one); !strings.Contains(w.Body.String(), `id="turn-c-1"`) {
		t.Error("a turn whose deletion was taken back is not shown")
	}
	if w := ask(account.Owner, one, "do", "undo", "turn", "c-1"); w.Header().Get("Location") != list {
		t.Errorf("taken back twice: %d %v", w.Code, w.Header())
	}
	if w := ask(account.Owner, one, "do", "delete"); w.Header().Get("Location") != list+"?undo=c" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(account.Owner, list+"?undo=c"); strings.Contains(w.Body.String(), `href="/console/conversations/c"`) || !strings.Contains(w.Body.String(), `action="/console/conversations/c"`) {
		t.Errorf("a deleted talk is shown, or cannot be brought back:\n%s", w.Body)
	}
	if w := ask(account.Owner, one); w.Code != http.StatusNotFound {
		t.Errorf("a deleted talk is shown: %d", w.Code)
	}
	ask(account.Owner, one, "do", "undo")
	ask(account.Owner, one, "do", "delete-turn", "turn", "c-1")
	a.web.talks.Bin.Close() // what was deleted is gone from now on
	turns, err := a.stored.Turns.Of(ctx, "c", 0, 9)
	if talk, wrong := a.stored.Talks.Get(ctx, "c"); err != nil || wrong != nil || !talk.Kept || len(turns) != 1 || turns[0].Rating != -1 {
		t.Errorf("%+v, %+v, %v, %v", talk, turns, err, wrong)
	}
	if w := ask(account.Owner, one, "do", "delete"); w.Header().Get("Location") != list+"?undo=c" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := ask(account.Owner, list); !strings.Contains(w.Body.String(), "Nothing is kept yet") {
		t.Error("it is still there")
	}
}
