package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/account"
	"xiaozhi/internal/devicetest"
)

// goodPassword is nobody's in any list.
const goodPassword = "seven green kettles hum"

var setupLine = regexp.MustCompile(`setup(?: code: |#)([0-9a-f]{10})`)

// answered is what came back for a request.
type answered struct {
	status int
	header http.Header
	body   string
}

// base is the address of the server without a path.
func (s *server) base() string { return strings.TrimSuffix(s.ota, "/xiaozhi/ota/") }

// http asks the server as nobody in particular; change alters the request.
func (s *server) http(ctx context.Context, t *testing.T, pattern, body string, change ...func(*http.Request)) answered {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	req, err := http.NewRequestWithContext(ctx, method, s.base()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{resp.StatusCode, resp.Header, string(text)}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// with shows the cookie of a session, from a page of the server itself.
func (s *server) with(cookie string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Cookie", cookie)
		r.Header.Set("Origin", s.base())
	}
}

func bearing(token string) func(*http.Request) { return header("Authorization", "Bearer "+token) }

// cookie returns the session's cookie of an answer, as a browser sends it back.
func (a answered) cookie(t *testing.T) string {
	t.Helper()
	line := a.header.Get("Set-Cookie")
	if a.status != http.StatusOK || line == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	cookie, _, _ := strings.Cut(line, ";")
	return cookie
}

// field returns a member of an answer.
func (a answered) field(t *testing.T, name string) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(a.body), &fields); err != nil {
		t.Fatal(err, a.body)
	}
	text, _ := fields[name].(string)
	return text
}

// setupCode is the code that the banner shows.
func (s *server) setupCode(ctx context.Context, t *testing.T) string {
	t.Helper()
	for {
		if m := setupLine.FindStringSubmatch(s.banner.String()); m != nil {
			return m[1]
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no setup code in %s", s.banner.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func credentials(code, name, password string) string {
	text, err := json.Marshal(map[string]string{"code": code, "name": name, "password": password})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// own makes the first owner, and returns their cookie.
func (s *server) own(ctx context.Context, t *testing.T) string {
	t.Helper()
	return s.http(ctx, t, "POST /api/v1/setup", credentials(s.setupCode(ctx, t), "olga", goodPassword)).cookie(t)
}

// command runs xiaozhi user beside the server.
func (s *server) command(ctx context.Context, t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, binary, append([]string{"user", "--data", filepath.Join(s.dir, "data")}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, cleanEnv(), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("user %q: %v: %s", args, err, out)
	}
	return string(out)
}

// people adds a member and a viewer, and returns the cookie and an admin token of each role.
func (s *server) people(ctx context.Context, t *testing.T, owner string) (cookies, tokens map[string]string) {
	t.Helper()
	cookies, tokens = map[string]string{"owner": owner}, map[string]string{}
	for _, role := range []string{"member", "viewer"} {
		body := `{"name":"` + role + `","role":"` + role + `","password":"` + goodPassword + `"}`
		if a := s.http(ctx, t, "POST /api/v1/users", body, s.with(owner)); a.status != 200 {
			t.Fatal(a.status, a.body)
		}
		cookies[role] = s.http(ctx, t, "POST /api/v1/login", credentials("", role, goodPassword)).cookie(t)
	}
	for role, cookie := range cookies {
		tokens[role] = s.http(ctx, t, "POST /api/v1/me/tokens", `{"label":"x","scopes":["admin"]}`, s.with(cookie)).field(t, "token")
	}
	return cookies, tokens
}

// TestSetupCodeAttacks: the setup code is guessed at a few times, works once, and is gone for good once there is an owner.
func TestSetupCodeAttacks(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	code := s.setupCode(ctx, t)
	waits := 0
	for range 100 {
		a := s.http(ctx, t, "POST /api/v1/setup", credentials("0000000000", "mallory", goodPassword))
		if a.status == 429 && a.header.Get("Retry-After") != "" {
			waits++
		} else if a.status != 401 {
			t.Fatal(a.status, a.body)
		}
	}
	if waits < 90 {
		t.Errorf("%d of 100 guesses were looked at", 100-waits)
	}
	var owner answered
	for owner = s.http(ctx, t, "POST /api/v1/setup", credentials(code, "olga", goodPassword)); owner.status == 429; { // the guesses are over soon
		time.Sleep(200 * time.Millisecond)
		owner = s.http(ctx, t, "POST /api/v1/setup", credentials(code, "olga", goodPassword))
	}
	owner.cookie(t)
	if a := s.http(ctx, t, "POST /api/v1/setup", credentials(code, "mallory", goodPassword)); a.status == 200 {
		t.Error("the code works again")
	}
	s.stop(t)
	again, err := launch(setup{}, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.stop(t) })
	if strings.Contains(again.banner.String(), "setup code") || strings.Contains(s.log.String(), code) {
		t.Error("a code is shown where there is an owner, or stands in the log")
	}
}

// TestOwnerBySettings: an installation that nobody looks at gets its owner from the settings, and no code; what is wrong
// there stops the start.
func TestOwnerBySettings(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(goodPassword+"\nnot this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"XIAOZHI_CONSOLE__OWNER=Olga", "XIAOZHI_CONSOLE__PASSWORD_FILE=" + file}
	s := start(t, setup{env: env})
	s.http(ctx, t, "POST /api/v1/login", credentials("", "olga", goodPassword)).cookie(t)
	if strings.Contains(s.banner.String(), "setup code") || strings.Contains(s.banner.String()+s.log.String(), goodPassword) || holds(t, filepath.Join(s.dir, "data"), goodPassword) != "" {
		t.Error("a code is shown, or the password lies about")
	}
	weak := filepath.Join(t.TempDir(), "weak")
	if err := os.WriteFile(weak, []byte("password1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{
		"no file": {"XIAOZHI_CONSOLE__OWNER=olga", "XIAOZHI_CONSOLE__PASSWORD_FILE=" + file + ".gone"}, "no password": {"XIAOZHI_CONSOLE__OWNER=olga"},
		"a weak one": {"XIAOZHI_CONSOLE__OWNER=olga", "XIAOZHI_CONSOLE__PASSWORD_FILE=" + weak},
	} {
		if started, err := launch(setup{env: env}, t.TempDir()); err == nil {
			_ = started.end()
			t.Errorf("%s: it starts", name)
		} else if !strings.Contains(err.Error(), "console.") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPasswordGuessing: of a thousand guesses few are looked at; who is logged in goes on, nothing that was typed is
// kept, and the audit does not fill the disk.
func TestPasswordGuessing(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	owner := s.own(ctx, t)
	looked := 0
	for i := range 1000 {
		name := []string{"olga", "OLGA ", "nobody", "mallory"}[i%4]
		switch a := s.http(ctx, t, "POST /api/v1/login", credentials("", name, "guessed-secret")); a.status {
		case 401:
			looked++
		case 429:
		default:
			t.Fatal(a.status, a.body)
		}
	}
	if looked < 5 || looked > 40 {
		t.Errorf("%d guesses were looked at", looked)
	}
	if a := s.http(ctx, t, "GET /api/v1/me", "", s.with(owner)); a.status != 200 {
		t.Errorf("who is logged in is locked out: %d", a.status)
	}
	audit := s.http(ctx, t, "GET /api/v1/audit?limit=200", "", s.with(owner)).body
	if n := strings.Count(audit, `"act":"login"`); n < 5 || n > 150 {
		t.Errorf("%d lines of the audit", n)
	}
	if strings.Contains(audit+s.log.String(), "guessed-secret") || holds(t, filepath.Join(s.dir, "data"), "guessed-secret") != "" {
		t.Error("what was typed is kept")
	}
}

// TestStolenCookie: a cookie is worth nothing after logout, disabling, a new password or role, by whichever way.
func TestStolenCookie(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	owner := s.own(ctx, t)
	_, _ = s.people(ctx, t, owner)
	login := func() string {
		return s.http(ctx, t, "POST /api/v1/login", credentials("", "member", goodPassword)).cookie(t)
	}
	for _, c := range []struct {
		name string
		end  func(cookie string)
	}{
		{"logout", func(cookie string) { s.http(ctx, t, "POST /api/v1/logout", "", s.with(cookie)) }},
		{"ended by the owner", func(string) { s.http(ctx, t, "DELETE /api/v1/users/member/sessions", "", s.with(owner)) }},
		{"ended by the command", func(string) { s.command(ctx, t, "", "sessions", "member", "end") }},
		{"another role", func(string) { s.command(ctx, t, "", "role", "member", "viewer") }},
		{"the same password anew", func(string) { s.command(ctx, t, goodPassword+"\n", "passwd", "member") }},
		{"disabled", func(string) { s.command(ctx, t, "", "disable", "member") }},
	} {
		cookie := login()
		before := s.http(ctx, t, "POST /api/v1/login", credentials("", "viewer", goodPassword), func(r *http.Request) { r.Header.Set("Cookie", cookie) }).cookie(t)
		if before == cookie {
			t.Fatal("a login takes over the session that was there")
		}
		if a := s.http(ctx, t, "GET /api/v1/me", "", s.with(cookie)); a.status != 200 {
			t.Fatal(c.name, a.status, a.body)
		}
		c.end(cookie)
		for _, path := range []string{"GET /api/v1/me", "GET /api/v1/me/sessions"} {
			if a := s.http(ctx, t, path, "", s.with(cookie)); a.status != 401 {
				t.Errorf("%s: %s answers %d", c.name, path, a.status)
			}
		}
	}
	if a := s.http(ctx, t, "POST /api/v1/login", credentials("", "member", goodPassword)); a.status != 401 {
		t.Errorf("a disabled account: %d", a.status)
	}
	if holds(t, filepath.Join(s.dir, "data"), strings.SplitN(owner, "=", 2)[1]) != "" {
		t.Error("a cookie lies in a file")
	}
}

// TestRevokedToken: what a token has open ends at the latest some seconds after it was revoked, or its person disabled;
// what others have open goes on, and the token opens nothing any more.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	owner := s.own(ctx, t)
	_, tokens := s.people(ctx, t, owner)
	dial := func(token string) *websocket.Conn {
		conn, resp, err := websocket.DefaultDialer.DialContext(ctx, "ws"+strings.TrimPrefix(s.base(), "http")+"/mcp/ws", http.Header{"Authorization": {"Bearer " + token}})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	over := func(conn *websocket.Conn) <-chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		}()
		return done
	}
	events := func(token string) <-chan struct{} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base()+"/api/mcp/connect", nil)
		if err != nil {
			t.Fatal(err)
		}
		bearing(token)(req)
		header("Accept", "text/event-stream")(req)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer resp.Body.Close()
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			}
		}()
		return done
	}
	own := dial(tokens["owner"])
	for name, c := range map[string]struct {
		token string
		end   func()
	}{
		"revoked by the command": {tokens["member"], func() { s.command(ctx, t, "", "token", "member", "revoke", tokens["member"][:9]) }},
		"disabled by the owner": {tokens["viewer"], func() {
			if a := s.http(ctx, t, "POST /api/v1/users/viewer/disable", "{}", s.with(owner)); a.status != 200 {
				t.Error(a.status, a.body)
			}
		}},
	} {
		socket, stream := over(dial(c.token)), events(c.token)
		began := time.Now()
		c.end()
		for what, done := range map[string]<-chan struct{}{"socket": socket, "stream": stream} {
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Errorf("%s: the %s goes on", name, what)
			}
		}
		t.Logf("%s: over after %v", name, time.Since(began))
		for _, path := range []string{"GET /api/mcp/tools", "GET /api/devices", "GET /api/v1/me"} {
			if a := s.http(ctx, t, path, "", bearing(c.token)); a.status != 401 {
				t.Errorf("%s: %s answers %d", name, path, a.status)
			}
		}
	}
	if err := own.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err != nil {
		t.Error("what others have open is over:", err)
	}
	if _, data, err := own.ReadMessage(); err != nil || !bytes.Contains(data, []byte("result")) {
		t.Errorf("what others have open is over: %s %v", data, err)
	}
	for _, token := range tokens {
		if strings.Contains(s.log.String(), token) || holds(t, filepath.Join(s.dir, "data"), token) != "" {
			t.Error("a token lies in the log or in a file")
		}
	}
}

// TestTokensOfPeople: a member's token works their own speaker, and finds neither that of others nor what is the server's.
func TestTokensOfPeople(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{env: []string{"XIAOZHI_AUTH__PAIRING=open"}})
	owner := s.own(ctx, t)
	_, tokens := s.people(ctx, t, owner)
	mine, other := newDeviceID(), newDeviceID()
	for _, id := range []string{mine, other} {
		s.dial(ctx, t, devicetest.Options{DeviceID: id, Mode: devicetest.Manual})
	}
	s.command(ctx, t, "", "devices", "member", "give", mine)
	for who, want := range map[string][2]bool{"owner": {true, true}, "member": {true, false}, "viewer": {false, false}} {
		devices := s.http(ctx, t, "GET /api/devices", "", bearing(tokens[who]))
		if got := [2]bool{strings.Contains(devices.body, mine), strings.Contains(devices.body, other)}; devices.status != 200 || got != want {
			t.Errorf("%s sees %d %v, want %v", who, devices.status, got, want)
		}
		for i, id := range []string{mine, other} {
			if a := s.http(ctx, t, "GET /api/devices/"+id+"/tools", "", bearing(tokens[who])); (a.status == 200) != want[i] {
				t.Errorf("%s, tools of %d: %d", who, i, a.status)
			}
			call := s.http(ctx, t, "POST /api/mcp/tools/call", `{"name":"device.abort","arguments":{"device_id":"`+id+`"}}`, bearing(tokens[who]))
			if strings.Contains(call.body, `"success":true`) != want[i] {
				t.Errorf("%s stops %d: %d %s", who, i, call.status, call.body)
			}
		}
		for i, id := range []string{mine, other} {
			a := s.http(ctx, t, "PUT /api/v1/devices/"+strings.ReplaceAll(strings.ToUpper(id), ":", "-")+"/name", `{"name":"of `+who+`"}`, bearing(tokens[who]))
			if shown := s.http(ctx, t, "GET /api/pairing", "", bearing(tokens["owner"])).body; (a.status == 200) != want[i] || (a.status == 403) == want[i] || !want[i] && i == 0 && strings.Contains(shown, "of "+who) {
				t.Errorf("%s renames %d: %d %s", who, i, a.status, a.body)
			} else if want[i] && strings.Count(shown, `"of `+who+`"`) != i+1 {
				t.Errorf("%s has renamed %d: %s", who, i, shown)
			}
		}
		if a := s.http(ctx, t, "GET /api/mcp/resources", "", bearing(tokens[who])); strings.Contains(a.body, "xiaozhi://log") != (who == "owner") {
			t.Errorf("%s and the log: %s", who, a.body)
		}
		if a := s.http(ctx, t, "GET /api/pairing", "", bearing(tokens[who])); (a.status == 200) != (who == "owner") {
			t.Errorf("%s and who is known: %d", who, a.status)
		}
	}
}

// TestMembersPair: a member makes a new speaker theirs by the code that it says, and takes over nobody's; a viewer does not.
func TestMembersPair(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{env: []string{"XIAOZHI_AUTH__PAIRING=ask"}})
	owner := s.own(ctx, t)
	cookies, tokens := s.people(ctx, t, owner)
	id := newDeviceID()
	codeOf := func(client string) string {
		t.Helper()
		a := s.http(ctx, t, "POST /xiaozhi/ota/", `{"application":{"version":"1.8.0"},"board":{"type":"x"}}`, header("Device-Id", id), header("Client-Id", client))
		m := regexp.MustCompile(`"code":"([0-9]{6})"`).FindStringSubmatch(a.body)
		if m == nil {
			t.Fatal(a.status, a.body)
		}
		return m[1]
	}
	code := codeOf("5b1f4a3e-0000-4a66-9a5e-0c2b8a6f1d33")
	pair := func(who, code string) answered {
		return s.http(ctx, t, "POST /api/v1/devices", `{"code":"`+code+`"}`, s.with(cookies[who]))
	}
	if a := pair("viewer", code); a.status != 403 {
		t.Errorf("a viewer: %d %s", a.status, a.body)
	}
	if a := pair("member", code); a.status != 200 || !strings.Contains(a.body, id) {
		t.Errorf("a member: %d %s", a.status, a.body)
	}
	if list := s.command(ctx, t, "", "devices", "member"); !strings.Contains(list, id) {
		t.Errorf("whose is it? %s", list)
	}
	if a := pair("member", codeOf("6c1f4a3e-1111-4a66-9a5e-0c2b8a6f1d33")); a.status != 409 {
		t.Errorf("who says the same name: %d %s", a.status, a.body)
	}
	for range 5 {
		pair("member", "000000")
	}
	if a := pair("member", "000000"); a.status != 429 {
		t.Errorf("guessing: %d %s", a.status, a.body)
	}
	if a := s.http(ctx, t, "POST /api/v1/devices", `{"code":"000000"}`, bearing(tokens["owner"])); a.status != 404 {
		t.Errorf("another person: %d %s", a.status, a.body)
	}
}

// TestEscalation: nobody does what their role does not, on any path, with a session or a token; tokens do nothing that
// wants a password.
func TestEscalation(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	owner := s.own(ctx, t)
	cookies, tokens := s.people(ctx, t, owner)
	reads := []string{
		"GET /api/v1/users", "GET /api/v1/users/olga/sessions", "GET /api/v1/users/olga/tokens", "GET /api/v1/users/olga/devices", "GET /api/v1/audit",
	}
	changes := []string{
		"POST /api/v1/users", "POST /api/v1/users/member/role", "POST /api/v1/users/olga/password", "POST /api/v1/users/olga/disable",
		"POST /api/v1/users/member/enable", "DELETE /api/v1/users/olga/sessions", "DELETE /api/v1/users/olga/tokens/xz_abcdef",
		"POST /api/v1/users/member/devices", "DELETE /api/v1/users/member/devices/x", "POST /api/v1/invites",
	}
	const body = `{"name":"mallory","role":"owner","password":"` + goodPassword + `","device":"x"}`
	for i, pattern := range append(reads, changes...) {
		for who, how := range map[string]func(*http.Request){
			"nobody": func(*http.Request) {}, "member": s.with(cookies["member"]), "viewer": s.with(cookies["viewer"]),
			"member's token": bearing(tokens["member"]), "viewer's token": bearing(tokens["viewer"]),
		} {
			want := map[bool]int{true: 401, false: 403}[who == "nobody"]
			if a := s.http(ctx, t, pattern, body, how); a.status != want {
				t.Errorf("%s asks %s: %d %s", who, pattern, a.status, a.body)
			}
		}
		if a := s.http(ctx, t, pattern, body, bearing(tokens["owner"])); i >= len(reads) && a.status != 403 {
			t.Errorf("the owner's token asks %s: %d %s", pattern, a.status, a.body)
		}
		time.Sleep(70 * time.Millisecond) // a person may ask so often only
	}
	for _, pattern := range []string{"POST /api/v1/me/tokens", "POST /api/v1/me/totp", "POST /api/v1/me/password"} {
		if a := s.http(ctx, t, pattern, `{"label":"x","scopes":["admin"],"password":"`+goodPassword+`"}`, bearing(tokens["owner"])); a.status != 403 {
			t.Errorf("a token asks %s: %d %s", pattern, a.status, a.body)
		}
	}
	if list := s.command(ctx, t, ""); strings.Contains(list, "mallory") || strings.Count(list, "owner") != 1 {
		t.Errorf("somebody was made:\n%s", list)
	}
	for _, c := range []struct{ pattern, body, says string }{
		{"POST /api/v1/users/olga/role", `{"role":"member"}`, "account/last-owner"}, {"POST /api/v1/users/olga/disable", `{}`, "account/last-owner"},
	} {
		if a := s.http(ctx, t, c.pattern, c.body, s.with(owner)); a.status != 409 || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: %d %s", c.pattern, a.status, a.body)
		}
	}
}

// TestInvitationAttacks: an invitation makes one account of its role, once; what is invented makes none.
func TestInvitationAttacks(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	owner := s.own(ctx, t)
	code := s.http(ctx, t, "POST /api/v1/invites", `{"role":"viewer"}`, s.with(owner)).field(t, "code")
	if a := s.http(ctx, t, "POST /api/v1/join", credentials(strings.Repeat("A", len(code)), "mallory", goodPassword)); a.status != 403 {
		t.Errorf("one of another server: %d %s", a.status, a.body)
	}
	if a := s.http(ctx, t, "POST /api/v1/join", credentials(code, "olga", goodPassword)); a.status != 409 {
		t.Errorf("a name that is taken: %d %s", a.status, a.body)
	}
	joined := strings.Replace(credentials(code, "vera", goodPassword), "{", `{"role":"owner",`, 1)
	vera := s.http(ctx, t, "POST /api/v1/join", joined).cookie(t)
	if me := s.http(ctx, t, "GET /api/v1/me", "", s.with(vera)); me.field(t, "role") != "viewer" {
		t.Errorf("who was invited as a viewer is %s", me.body)
	}
	if a := s.http(ctx, t, "POST /api/v1/join", credentials(code, "mallory", goodPassword)); a.status != 403 {
		t.Errorf("used again: %d %s", a.status, a.body)
	}
	waits := 0
	for range 30 {
		if a := s.http(ctx, t, "POST /api/v1/join", credentials("x", "mallory", goodPassword)); a.status == 429 {
			waits++
		}
	}
	if waits < 20 {
		t.Errorf("30 invented invitations: %d had to wait", waits)
	}
}

// TestOddRequests: what no page of this server sends is refused, with the headers that an answer has.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	owner := s.own(ctx, t)
	only := func(r *http.Request) { r.Header.Set("Cookie", owner) }
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	const add = `{"name":"mallory","role":"owner","password":"` + goodPassword + `"}`
	for _, c := range []struct {
		name, pattern, body string
		want                int
		how                 []func(*http.Request)
	}{
		{"a page of another site", "POST /api/v1/users", add, 403, []func(*http.Request){only, header("Origin", "http://evil.example")}},
		{"no origin", "POST /api/v1/users", add, 403, []func(*http.Request){only}},
		{"another port of this machine", "POST /api/v1/users", add, 403, []func(*http.Request){only, header("Origin", "http://127.0.0.1:1")}},
		{"another site that hides", "POST /api/v1/users", add, 403, []func(*http.Request){only, header("Origin", "null"), header("Sec-Fetch-Site", "cross-site")}},
		{"a form", "POST /api/v1/users", add, 415, []func(*http.Request){s.with(owner), header("Content-Type", "text/plain")}},
		{"a form that is posted", "POST /api/v1/login", "name=olga", 415, []func(*http.Request){header("Content-Type", "application/x-www-form-urlencoded")}},
		{"a link", "GET /api/v1/logout", "", 405, []func(*http.Request){only}},
		{"a name that leads here", "GET /api/v1/users", "", 421, []func(*http.Request){only, host("evil.example")}},
		{"a name that looks like ours", "POST /api/v1/login", credentials("", "olga", goodPassword), 421, []func(*http.Request){host("127.0.0.1.evil.example")}},
		{"a body too large", "POST /api/v1/users", `{"name":"` + strings.Repeat("x", 70<<10) + `"}`, 400, []func(*http.Request){s.with(owner)}},
		{"two values", "POST /api/v1/users", add + add, 400, []func(*http.Request){s.with(owner)}},
		{"no object", "POST /api/v1/users", `["x"]`, 400, []func(*http.Request){s.with(owner)}},
		{"a name with a line break", "POST /api/v1/users", `{"name":"x\r\nSet-Cookie: a=b","role":"viewer","password":"` + goodPassword + `"}`, 400, []func(*http.Request){s.with(owner)}},
		{"a name with markup", "POST /api/v1/users", `{"name":"<img onerror=x>","role":"viewer","password":"` + goodPassword + `"}`, 400, []func(*http.Request){s.with(owner)}},
		{"a path that climbs", "GET /api/v1/users/..%2f..%2fdata/sessions", "", 404, []func(*http.Request){s.with(owner)}},
		{"a path with a line break", "POST /api/v1/users/x%0d%0aSet-Cookie:a=b/role", `{"role":"viewer"}`, 404, []func(*http.Request){s.with(owner)}},
	} {
		a := s.http(ctx, t, c.pattern, c.body, c.how...)
		if a.status != c.want || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s %s, want %d", c.name, a.status, a.header.Get("Set-Cookie"), a.body, c.want)
		}
		if strings.Contains(a.body, `"code"`) && (a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s: headers %v", c.name, a.header)
		}
		if strings.Contains(a.body, "goroutine") || strings.Contains(a.body, ".go:") {
			t.Errorf("%s tells of the program: %s", c.name, a.body)
		}
	}
	if list := s.command(ctx, t, ""); strings.Count(strings.TrimSpace(list), "\n") != 0 {
		t.Errorf("somebody was made:\n%s", list)
	}
}

// TestSecondFactorAtTheServer: a phone is enrolled, its code counts once, and whoever lost it is helped by the command;
// its secret lies nowhere in the open.
func TestSecondFactorAtTheServer(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	owner := s.own(ctx, t)
	enrolled := s.http(ctx, t, "POST /api/v1/me/totp", "{}", s.with(owner))
	secret := enrolled.field(t, "secret")
	code := account.CodeNow(secret, time.Now())
	if a := s.http(ctx, t, "POST /api/v1/me/totp/confirm", `{"code":"`+code+`"}`, s.with(owner)); a.status != 200 {
		t.Fatal(a.status, a.body)
	}
	login := func(second string) answered {
		return s.http(ctx, t, "POST /api/v1/login", `{"name":"olga","password":"`+goodPassword+`","second":"`+second+`"}`)
	}
	if a := login(""); a.status != 401 || !strings.Contains(a.body, "account/code-needed") {
		t.Errorf("without a code: %d %s", a.status, a.body)
	}
	if a := login(code); a.status != 401 {
		t.Errorf("a code that was used: %d %s", a.status, a.body)
	}
	s.stop(t)
	again, err := launch(setup{}, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.stop(t) })
	next := account.CodeNow(secret, time.Now().Add(30*time.Second)) // one step early counts
	body := `{"name":"olga","password":"` + goodPassword + `","second":"` + next + `"}`
	again.http(ctx, t, "POST /api/v1/login", body).cookie(t)
	if a := again.http(ctx, t, "POST /api/v1/login", body); a.status != 401 {
		t.Errorf("used twice: %d", a.status)
	}
	again.command(ctx, t, "", "totp", "off", "olga")
	again.http(ctx, t, "POST /api/v1/login", credentials("", "olga", goodPassword)).cookie(t)
	if holds(t, filepath.Join(s.dir, "data"), secret) != "" || strings.Contains(s.log.String()+again.log.String(), secret) {
		t.Error("the secret lies in a file or in the log")
	}
}
