package access

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// as asks with the session of a role, from a page of the server itself.
func (r *rig) as(role string) request { return cookie(r.cookies[role]) }

// fields reads an answer.
func fields(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err, w.Body)
	}
	return out
}

// TestPeopleByHTTP: an owner does with accounts what the command does, and each refusal says why.
func TestPeopleByHTTP(t *testing.T) {
	r := newRig(t).people().slowly()
	mux := r.mux(r.guard.Routes()...)
	device := store.Identity{ID: "d1", Address: "d1", Client: "c", State: store.DevicePaired}
	if err := r.db.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{device}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pattern, body string
		want          int
		says          string
	}{
		{"POST /api/v1/users", `{"name":"Bob","role":"member","password":"` + good + `"}`, 200, "{}"},
		{"POST /api/v1/users", `{"name":"bob","role":"member","password":"` + good + `"}`, 409, "account/name-taken"},
		{"POST /api/v1/users", `{"name":"cid","role":"member","password":"password1"}`, 400, "account/password-known"},
		{"POST /api/v1/users", `{"name":"cid","role":"member"}`, 400, "account/password-short"},
		{"POST /api/v1/users", `{"name":"cid","role":"boss","password":"` + good + `"}`, 400, "account/role-unknown"},
		{"POST /api/v1/users", `{"name":"c\r\nid","role":"member","password":"` + good + `"}`, 400, "account/name-bad"},
		{"POST /api/v1/users/bob/role", `{"role":"viewer"}`, 200, "{}"},
		{"POST /api/v1/users/bob/role", `{"role":""}`, 400, "account/role-unknown"},
		{"POST /api/v1/users/nobody/role", `{"role":"viewer"}`, 404, "account/no-user"},
		{"POST /api/v1/users/the-owner/role", `{"role":"member"}`, 409, "account/last-owner"},
		{"POST /api/v1/users/the-owner/disable", `{}`, 409, "account/last-owner"},
		{"POST /api/v1/users/bob/password", `{"password":"another good one"}`, 200, "{}"},
		{"POST /api/v1/users/bob/password", `{"password":"bobbobbob1"}`, 400, "account/password-known"},
		{"POST /api/v1/users/bob/disable", `{}`, 200, "{}"},
		{"POST /api/v1/users/bob/enable", `{}`, 200, "{}"},
		{"POST /api/v1/users/bob/devices", `{"device":"D1"}`, 200, "{}"},
		{"POST /api/v1/users/bob/devices", `{"device":"d2"}`, 404, "account/no-device"},
		{"GET /api/v1/users/bob/devices", "", 200, `["d1"]`},
		{"DELETE /api/v1/users/bob/devices/D1", "", 200, "{}"},
		{"GET /api/v1/users/bob/devices", "", 200, `[]`},
		{"DELETE /api/v1/users/bob", "", 200, "{}"},
		{"DELETE /api/v1/users/bob", "", 404, "account/no-user"},
		{"DELETE /api/v1/users/The-Owner", "", 409, "account/own-account"},
		{"GET /api/v1/users/the-member/sessions", "", 200, `"remote"`},
		{"DELETE /api/v1/users/the-member/sessions", "", 200, "{}"},
		{"GET /api/v1/users/the-member/sessions", "", 200, `"sessions":[]`},
		{"GET /api/v1/users/the-member/tokens", "", 200, `"head":"xz_`},
		{"POST /api/v1/invites", `{"role":"viewer"}`, 200, `"code"`},
		{"POST /api/v1/invites", `{"role":"boss"}`, 400, "account/role-unknown"},
		{"POST /api/v1/me/tokens", `{"label":"x","scopes":["read","say"],"streams":["device-*"],"rate":3,"days":2}`, 200, `"token":"xz_`},
		{"POST /api/v1/me/tokens", `{"label":"x","scopes":["everything"]}`, 400, "account/scope-unknown"},
		{"POST /api/v1/me/tokens", `{"label":"x","scopes":["read"],"days":-1}`, 400, "account/token-bad"},
		{"POST /api/v1/me/tokens", `{"label":"x","scopes":["read"],"rate":300}`, 400, "account/token-bad"},
		{"GET /api/v1/me/tokens", "", 200, `"streams":["device-*"]`},
		{"DELETE /api/v1/me/tokens/xz_nothing", "", 401, "account/no-token"},
		{"DELETE /api/v1/invites/nothing", "", 403, "account/no-invite"},
		{"POST /api/v1/users", `{"name":"admin-token","role":"viewer","password":"` + good + `"}`, 409, "account/name-taken"},
		{"GET /api/v1/users", "", 200, `"name":"the-viewer"`},
	} {
		w := ask(mux, c.pattern, c.body, r.as("owner"))
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: %d %s, want %d %s", c.pattern, c.body, w.Code, w.Body, c.want, c.says)
		}
		for _, secret := range []string{"argon2", good, "another good one"} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s tells %s", c.pattern, secret)
			}
		}
	}
	if w := ask(mux, "GET /api/v1/me", "", r.as("member")); w.Code != 401 {
		t.Errorf("a session that was ended: %d", w.Code)
	}
}

// TestStepUp: ten minutes after the password was shown a session only looks; the password opens it again, and no token
// of a program does what needs it.
func TestStepUp(t *testing.T) {
	r := newRig(t).people()
	r.guard.o.Now = func() time.Time { return time.Now().Add(11 * time.Minute) }
	mux := r.mux(r.guard.Routes()...)
	const add = `{"name":"bob","role":"owner","password":"` + good + `"}`
	if w := ask(mux, "POST /api/v1/users", add, r.as("owner")); w.Code != 401 || !strings.Contains(w.Body.String(), "account/prove-again") {
		t.Errorf("a stale session: %d %s", w.Code, w.Body)
	}
	if w := ask(mux, "GET /api/v1/users", "", r.as("owner")); w.Code != 200 {
		t.Errorf("it may look: %d %s", w.Code, w.Body)
	}
	if w := ask(mux, "POST /api/v1/prove", `{"password":"wrong one"}`, r.as("owner")); w.Code != 401 {
		t.Errorf("a wrong password: %d", w.Code)
	}
	r.guard.o.Now = time.Now
	before := r.cookies["owner"]
	if w := ask(mux, "POST /api/v1/prove", `{"password":"`+good+`"}`, r.as("owner")); w.Code != 200 || len(w.Result().Cookies()) != 1 {
		t.Errorf("prove: %d %s", w.Code, w.Body)
	} else {
		r.cookies["owner"] = w.Result().Cookies()[0]
	}
	if w := ask(mux, "GET /api/v1/me", "", cookie(before)); w.Code != 401 {
		t.Errorf("the session before: %d", w.Code)
	}
	if w := ask(mux, "POST /api/v1/users", add, bearer(r.tokens["owner admin"])); w.Code != 403 {
		t.Errorf("a token: %d", w.Code)
	}
	if w := ask(mux, "POST /api/v1/users", add, r.as("owner")); w.Code != 200 {
		t.Errorf("a fresh session: %d %s", w.Code, w.Body)
	}
}

// TestAuditByHTTP: it is told in pages, without what was typed, and to owners only.
func TestAuditByHTTP(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	seen, before := map[string]bool{}, ""
	for range 9 {
		w := ask(mux, "GET /api/v1/audit?limit=2"+before, "", r.as("owner"))
		got := fields(t, w)
		for _, a := range got["acts"].([]any) {
			line, _ := json.Marshal(a)
			if seen[string(line)] {
				t.Errorf("twice: %s", line)
			}
			seen[string(line)] = true
		}
		next, ok := got["before"].(string)
		if !ok {
			break
		}
		before = "&before=" + next
	}
	if len(seen) < 12 { // an account, a login and two tokens of each role
		t.Errorf("%d acts", len(seen))
	}
	for _, bad := range []string{"?limit=0", "?limit=x", "?limit=1000000", "?before=x", "?before=1", "?before=1."} {
		if w := ask(mux, "GET /api/v1/audit"+bad, "", r.as("owner")); w.Code != 400 {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
}

// TestRebinding: a name that somebody else has lead here opens nothing, whatever cookie comes with it.
func TestRebinding(t *testing.T) {
	r := newRig(t).people()
	r.guard.o.OwnHost = addressed
	mux := r.mux(r.guard.Routes()...)
	for host, want := range map[string]int{
		"127.0.0.1:8000": 200, "192.168.1.2": 200, "[::1]:8000": 200, "localhost:8000": 200, "LOCALHOST": 200,
		"evil.example:8000": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "": 421, "xiaozhi": 421,
	} {
		named := func(q *http.Request) { q.Host = host }
		if w := ask(mux, "GET /api/v1/me", "", r.as("owner"), named); w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
		login := ask(mux, "POST /api/v1/login", `{"name":"the-viewer","password":"`+good+`"}`, named)
		if (login.Code == 421) != (want == 421) || want == 421 && (len(login.Result().Cookies()) > 0 || !strings.Contains(login.Body.String(), "mcp.hosts")) {
			t.Errorf("login at %q: %d %s", host, login.Code, login.Body)
		}
	}
}

// TestPersonRate: a person asks 30 times a second, by all browsers and tokens together; another one is not kept waiting.
func TestPersonRate(t *testing.T) {
	r := newRig(t).people()
	at := time.Now()
	r.guard.o.Now = func() time.Time { return at }
	mux := r.mux(r.guard.Routes()...)
	let := 0
	for i := range 200 {
		how := r.as("member")
		if i%2 > 0 {
			how = bearer(r.tokens["member read"])
		}
		w := ask(mux, "GET /api/v1/me", "", how)
		if w.Code == 200 {
			let++
		} else if w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Fatal(w.Code, w.Body)
		}
	}
	if let != 2*perSecond {
		t.Errorf("%d of 200 at once", let)
	}
	if w := ask(mux, "GET /api/v1/me", "", r.as("viewer")); w.Code != 200 {
		t.Errorf("another person: %d", w.Code)
	}
	at = at.Add(time.Second)
	if w := ask(mux, "GET /api/v1/me", "", r.as("member")); w.Code != 200 {
		t.Errorf("a second later: %d", w.Code)
	}
}

// TestInvitesByHTTP: owners see who invited to what, and take it back; an invitation ends with the rights of who invited.
func TestInvitesByHTTP(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	invite := func() (code, id string) {
		w := ask(mux, "POST /api/v1/invites", `{"role":"member"}`, r.as("owner"))
		got := fields(t, w)
		return got["code"].(string), got["id"].(string)
	}
	join := func(code, name string) int {
		return ask(mux, "POST /api/v1/join", `{"code":"`+code+`","name":"`+name+`","password":"`+good+`"}`).Code
	}
	open := func(code, id string) bool {
		body := ask(mux, "GET /api/v1/invites", "", r.as("owner")).Body.String()
		if strings.Contains(body, code) {
			t.Errorf("the list lets in: %s", body)
		}
		return strings.Contains(body, `{"id":"`+id+`","role":"member","by":"the-owner","ends":`)
	}
	kept, keptID := invite()
	taken, takenID := invite()
	if !open(kept, keptID) || !open(taken, takenID) {
		t.Error("one is not listed")
	}
	if w := ask(mux, "DELETE /api/v1/invites/"+takenID, "", r.as("owner")); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := join(taken, "mallory"); got != 403 || open(taken, takenID) {
		t.Errorf("one that was withdrawn: %d", got)
	}
	if got := join(kept, "bob"); got != 200 || open(kept, keptID) {
		t.Errorf("the other: %d", got)
	}
	last, _ := invite()
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	for _, err := range []error{r.accounts.SetRole(t.Context(), by, "bob", account.Owner), r.accounts.Disable(t.Context(), by, "the-owner", true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := join(last, "mallory"); got != 403 {
		t.Errorf("by who was disabled: %d", got)
	}
}

// TestFactorOfOthers: an owner takes the second factor of somebody away, who is logged out everywhere; it is in the audit.
func TestFactorOfOthers(t *testing.T) {
	r := newRig(t).people()
	mux := r.mux(r.guard.Routes()...)
	secret, _ := fields(t, ask(mux, "POST /api/v1/me/totp", "{}", r.as("member")))["secret"].(string)
	if w := ask(mux, "POST /api/v1/me/totp/confirm", `{"code":"`+account.CodeNow(secret, time.Now())+`"}`, r.as("member")); w.Code != 200 {
		t.Fatal(w.Code, w.Body)
	}
	if w := ask(mux, "GET /api/v1/me", "", r.as("member")); w.Code != 200 {
		t.Fatal(w.Code)
	}
	if w := ask(mux, "DELETE /api/v1/users/the-member/totp", "", r.as("owner")); w.Code != 200 {
		t.Fatal(w.Code, w.Body)
	}
	if w := ask(mux, "GET /api/v1/me", "", r.as("member")); w.Code != 401 {
		t.Errorf("its session: %d", w.Code)
	}
	if w := ask(mux, "POST /api/v1/login", `{"name":"the-member","password":"`+good+`"}`); w.Code != 200 {
		t.Errorf("without a code: %d %s", w.Code, w.Body)
	}
	if audit := ask(mux, "GET /api/v1/audit", "", r.as("owner")).Body.String(); !strings.Contains(audit, `"act":"totp.off","object":"the-member","ok":true`) || !strings.Contains(audit, `"who":"the-owner"`) {
		t.Error(audit)
	}
}

// TestGetChangesNothing: looking at everything leaves accounts, sessions, tokens and the audit as they were.
func TestGetChangesNothing(t *testing.T) {
	r := newRig(t).people().slowly()
	mux := r.mux(r.guard.Routes()...)
	state := func() string {
		var all strings.Builder
		for _, path := range []string{"users", "users/the-owner/sessions", "users/the-member/tokens", "audit?limit=200"} {
			all.WriteString(ask(mux, "GET /api/v1/"+path, "", r.as("owner")).Body.String())
		}
		return all.String()
	}
	before, looked := state(), 0
	for _, route := range r.guard.Routes() {
		path, ok := strings.CutPrefix(route.Pattern, "GET ")
		if !ok {
			continue
		}
		looked++
		path = strings.ReplaceAll(path, "{name}", "the-member")
		for _, method := range []string{"GET ", "HEAD "} {
			if w := ask(mux, method+path+"?role=owner&password=x&name=x", "", r.as("owner")); w.Code != 200 {
				t.Errorf("%s%s: %d", method, path, w.Code)
			}
		}
	}
	if after := state(); after != before || looked < 6 {
		t.Errorf("%d paths were looked at; before\n%s\nafter\n%s", looked, before, after)
	}
}

// TestHeaders: each answer says that nobody may keep, guess at, frame or embed it, refusals and failures too.
func TestHeaders(t *testing.T) {
	r := newRig(t).people()
	fails := Route{Pattern: "GET /fails", For: Anyone, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") })}
	mux := r.mux(append(r.guard.Routes(), fails)...)
	for _, route := range append(r.guard.Routes(), fails) {
		pattern := strings.NewReplacer("{name}", "x", "{head}", "x", "{id}", "x").Replace(route.Pattern)
		for _, how := range []request{func(*http.Request) {}, r.as("viewer"), with("Host", "x")} {
			h := ask(mux, pattern, "{}", how).Header()
			csp := h.Get("Content-Security-Policy")
			for _, part := range []string{"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} {
				if !strings.Contains(csp, part) {
					t.Errorf("%s: %q", pattern, csp)
				}
			}
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "same-origin" || h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %v", pattern, h)
			}
		}
	}
}
