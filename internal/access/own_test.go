package access

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
)

// TestOwnPassword: it ends all other sessions; that of who changed it goes on as a new one.
func TestOwnPassword(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	other, err := r.accounts.Login(t.Context(), "the-viewer", account.Proof{Password: good}, account.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"password":"another good one"}`, `{"password":"another good one","current":"wrong one"}`} {
		if w := ask(mux, "POST /api/v1/me/password", body, r.as("viewer")); w.Code != 401 {
			t.Errorf("without the one before: %d", w.Code)
		}
	}
	w := ask(mux, "POST /api/v1/me/password", `{"password":"another good one","current":"`+good+`"}`, r.as("viewer"))
	if w.Code != 200 || len(w.Result().Cookies()) != 1 {
		t.Fatal(w.Code, w.Body)
	}
	fresh := w.Result().Cookies()[0]
	for name, c := range map[string]struct {
		cookie *http.Cookie
		want   int
	}{"the new one": {fresh, 200}, "the one before": {r.cookies["viewer"], 401}, "another browser": {&http.Cookie{Name: "xiaozhi", Value: other}, 401}} {
		if w := ask(mux, "GET /api/v1/me", "", cookie(c.cookie)); w.Code != c.want {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

// TestOwnPasswordRefused: a password that cannot be taken leaves the session as it is.
func TestOwnPasswordRefused(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	if w := ask(mux, "POST /api/v1/me/password", `{"password":"password1","current":"`+good+`"}`, r.as("viewer")); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(mux, "GET /api/v1/me/sessions", "", r.as("viewer")); w.Code != 200 || strings.Count(w.Body.String(), `"since"`) != 1 {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// TestOwnAccount: who shows the password drops the own account, with all that was open; the last owner cannot.
func TestOwnAccount(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	right := `{"current":"` + good + `"}`
	for _, c := range []struct {
		role, body string
		want       int
	}{{"member", "", 401}, {"member", `{"current":"wrong one"}`, 401}, {"owner", right, 409}, {"member", right, 200}} {
		w := ask(mux, "DELETE /api/v1/me", c.body, r.as(c.role))
		if w.Code != c.want {
			t.Errorf("%s %s: %d %s", c.role, c.body, w.Code, w.Body)
		}
		if gone := w.Code == 200; gone != (w.Header().Get("Clear-Site-Data") != "") {
			t.Errorf("%v", w.Header())
		}
	}
	for name, how := range map[string]request{"session": r.as("member"), "token": bearer(r.tokens["member admin"])} {
		if w := ask(mux, "GET /api/v1/me", "", how); w.Code != 401 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if w := ask(mux, "DELETE /api/v1/me", right, bearer(r.tokens["viewer admin"])); w.Code != 403 {
		t.Errorf("by a token: %d", w.Code)
	}
	if w := ask(mux, "GET /api/v1/me", "", r.as("owner")); w.Code != 200 {
		t.Errorf("the owner, who was refused: %d", w.Code)
	}
}

// TestOtherSessions: who logs out elsewhere stays logged in here.
func TestOtherSessions(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	other, err := r.accounts.Login(t.Context(), "the-viewer", account.Proof{Password: good}, account.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	list := ask(mux, "GET /api/v1/me/sessions", "", r.as("viewer")).Body.String()
	if strings.Count(list, `"since"`) != 2 || strings.Count(list, `"this":true`) != 1 || strings.Contains(list, other) {
		t.Error(list)
	}
	if w := ask(mux, "DELETE /api/v1/me/sessions", "", r.as("viewer")); w.Code != 200 {
		t.Error(w.Code, w.Body)
	}
	if w := ask(mux, "GET /api/v1/me", "", r.as("viewer")); w.Code != 200 {
		t.Errorf("here: %d", w.Code)
	}
	if w := ask(mux, "GET /api/v1/me", "", cookie(&http.Cookie{Name: "xiaozhi", Value: other})); w.Code != 401 {
		t.Errorf("elsewhere: %d", w.Code)
	}
}

// TestSecondFactorByHTTP is the way of a second factor, from the page to the login with it, and away.
func TestSecondFactorByHTTP(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	w := ask(mux, "POST /api/v1/me/totp", "{}", r.as("member"))
	secret, _ := fields(t, w)["secret"].(string)
	recovery, _ := fields(t, w)["recovery"].([]any)
	if w.Code != 200 || len(secret) != 32 || len(recovery) != 10 || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatal(w.Code, w.Body)
	}
	if w := ask(mux, "POST /api/v1/me/totp/confirm", `{"code":"000000"}`, r.as("member")); w.Code != 401 {
		t.Errorf("a wrong code: %d", w.Code)
	}
	if w := ask(mux, "POST /api/v1/me/totp/confirm", `{"code":"`+account.CodeNow(secret, time.Now())+`"}`, r.as("member")); w.Code != 200 {
		t.Fatal(w.Code, w.Body)
	}
	login := func(second string) *httptest.ResponseRecorder {
		return ask(mux, "POST /api/v1/login", `{"name":"the-member","password":"`+good+`","second":"`+second+`"}`)
	}
	if w := login(""); w.Code != 401 || !strings.Contains(w.Body.String(), "account/code-needed") || len(w.Result().Cookies()) > 0 {
		t.Errorf("without a code: %d %s", w.Code, w.Body)
	}
	if w := login(recovery[0].(string)); w.Code != 200 {
		t.Errorf("a recovery code: %d %s", w.Code, w.Body)
	}
	if w := login(recovery[0].(string)); w.Code != 401 {
		t.Errorf("the same again: %d", w.Code)
	}
	if w := ask(mux, "DELETE /api/v1/me/totp", "", r.as("member")); w.Code != 200 || len(w.Result().Cookies()) != 1 {
		t.Errorf("away: %d %s", w.Code, w.Body)
	} else if again := ask(mux, "GET /api/v1/me", "", cookie(w.Result().Cookies()[0])); again.Code != 200 {
		t.Errorf("where it was taken away: %d", again.Code)
	}
	if w := ask(mux, "GET /api/v1/me", "", r.as("member")); w.Code != 401 {
		t.Errorf("a session of before: %d", w.Code)
	}
	if w := login(""); w.Code != 200 {
		t.Errorf("without one again: %d %s", w.Code, w.Body)
	}
	if strings.Contains(r.log.String(), secret) {
		t.Error("the log has the secret")
	}
}
