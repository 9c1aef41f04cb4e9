package app

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/timezone"
)

// pageClient asks the pages of a program as a browser would, without script.
type pageClient struct {
	t       *testing.T
	handler http.Handler
	cookies map[string]*http.Cookie
}

// ask returns the answer to GET, or to POST with a form. Whoever is faster than people may be asks again a second later.
func (c *pageClient) ask(path string, form url.Values) *httptest.ResponseRecorder {
	c.t.Helper()
	w := c.askOnce(path, form)
	if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "2" {
		time.Sleep(time.Second)
		w = c.askOnce(path, form)
	}
	return w
}

func (c *pageClient) askOnce(path string, form url.Values) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if form != nil {
		r = httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://127.0.0.1:8000")
	}
	r.Host, r.RemoteAddr = "127.0.0.1:8000", "127.0.0.1:9"
	r.Header.Set("Accept", "text/html")
	for _, cookie := range c.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		if cookie.MaxAge < 0 {
			delete(c.cookies, cookie.Name)
		} else {
			c.cookies[cookie.Name] = cookie
		}
	}
	return w
}

// expect asks and compares the status, and where it leads or what it says.
func (c *pageClient) expect(path string, form url.Values, status int, want string) {
	c.t.Helper()
	w := c.ask(path, form)
	if got := w.Header().Get("Location") + w.Body.String(); w.Code != status || !strings.Contains(got, want) {
		_, content, _ := strings.Cut(w.Body.String(), "<main")
		c.t.Errorf("%s: %d %q, not %d %q:\n%.1500s", path, w.Code, w.Header().Get("Location"), status, want, content)
	}
}

// TestSetup: the code of the start makes an owner, once; speakers that called become theirs; the door lets them in again.
func TestSetup(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "{}")
	defer a.Close()
	c := &pageClient{t, h, map[string]*http.Cookie{}}
	c.expect("/", nil, 303, "/console/overview")
	c.expect("/console/overview", nil, 303, "/console/login?to=%2Fconsole%2Foverview")
	c.expect("/console/login", nil, 303, "/console/setup") // nobody could log in
	c.expect("/console/setup", nil, 200, "Setup code")
	form := url.Values{"code": {"wrong"}, "name": {"ann"}, "password": {"correct horse battery"}, "again": {"correct horse batterie"}}
	c.expect("/console/setup", form, 422, "not the same")
	form.Set("again", "correct horse battery")
	c.expect("/console/setup", form, 422, `value="ann"`)
	form.Set("code", a.accounts.SetupCode(t.Context()))
	form.Set("zone", "Berlin")
	c.expect("/console/setup", form, 422, "&#34;Berlin&#34; is no known time zone; did you mean Europe/Berlin?")
	c.expect("/console/setup", form, 422, `value="Berlin" list="zones"`)
	c.expect("/console/setup?lang=zh", form, 422, "没有名为“Berlin”的时区")
	form.Set("zone", "Europe/Berlin")
	form.Set("lang", "en")
	c.expect("/console/setup", form, 303, "/console/setup/services")
	if got := a.forces.zone.Location().String(); got != "Europe/Berlin" || a.settings.Revision() != 1 {
		t.Errorf("the server has the time of %s", got)
	}
	c.expect("/console/setup", form, 404, "")
	c.expect("/console/setup", nil, 404, "")
	c.expect("/console/setup/services", nil, 200, "pocketsphinx")
	c.expect("/console/setup/address", nil, 200, "/xiaozhi/ota/")
	c.expect("/console/overview", nil, 200, "Overview")
	c.expect("/console/nothing", nil, 404, "no such page")
	c.expect("/console/logout", url.Values{}, 303, "/console/login")
	c.expect("/console/overview", nil, 303, "/console/login")
	login := url.Values{"name": {"ann"}, "password": {"wrong"}, "to": {"/console/setup/address"}}
	c.expect("/console/login", login, 422, "password or the code is wrong")
	login.Set("password", "correct horse battery")
	c.expect("/console/login", login, 303, "/console/setup/address")
	if !a.accounts.HasOwner(t.Context()) {
		t.Error("nobody owns the server")
	}
}

// TestSetupWithoutZone: a zone that stands in a file or the environment cannot be chosen, and one that is left as it is makes no
// change of the settings. An empty one is that of the machine.
func TestSetupWithoutZone(t *testing.T) {
	for name, test := range map[string]struct {
		environ, typed, page, zone string
		revision                   int
	}{
		"pinned":      {"XIAOZHI_SERVER__TIMEZONE=Asia/Tokyo", "Europe/Berlin", "In Asia/Tokyo it is", "Asia/Tokyo", 0},
		"as it is":    {"", "Asia/Shanghai", "In Asia/Shanghai it is", "Asia/Shanghai", 0},
		"the machine": {"", "", "the server runs on, " + timezone.Machine().String(), timezone.Machine().String(), 1},
	} {
		a, err := Build(t.Context(), mustLoadText(t, "{}", test.environ), Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		h, err := a.routes()
		if err != nil {
			t.Fatal(err)
		}
		c := &pageClient{t, h, map[string]*http.Cookie{}}
		c.expect("/console/setup", nil, 200, test.page)
		if page := c.ask("/console/setup", nil).Body.String(); strings.Contains(page, " disabled aria") != (name == "pinned") || strings.Contains(page, "data-offer") == (name == "pinned") {
			t.Errorf("%s: %.3000s", name, page)
		}
		c.expect("/console/setup", url.Values{
			"code": {a.accounts.SetupCode(t.Context())}, "name": {"ann"}, "password": {"correct horse battery"}, "again": {"correct horse battery"}, "zone": {test.typed},
		}, 303, "/console/setup/services")
		if got := a.forces.zone.Location().String(); got != test.zone || a.settings.Revision() != test.revision {
			t.Errorf("%s: the time of %s by revision %d", name, got, a.settings.Revision())
		}
		a.Close()
	}
}

// TestAddressesOfSpeakers: a server that listens at this machine alone says that no speaker reaches it, and what to do.
func TestAddressesOfSpeakers(t *testing.T) {
	for listen, warns := range map[string]bool{"['127.0.0.1:8123']": true, "['127.0.0.1:8123', '192.168.1.7:8123']": false} {
		a, h := builtApp(t, t.TempDir(), "server: {listen: "+listen+"}")
		c := owned(t, a, h)
		body := c.ask("/console/setup/address", nil).Body.String()
		if got := strings.Contains(body, "Speakers cannot reach this server yet."); got != warns || strings.Contains(body, "--listen 0.0.0.0:8123") != warns || strings.Contains(body, "<figure") == warns {
			t.Errorf("%s: %.3000s", listen, body)
		}
		a.Close()
	}
}

// TestManySpeakersCall: the setup lists those that called last, fifty of them, and says that there are more.
func TestManySpeakersCall(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "auth: {pairing: open}")
	defer a.Close()
	c := owned(t, a, h)
	for i := range 53 {
		if i == 50 {
			if body := c.ask("/console/setup/speakers", nil).Body.String(); strings.Count(body, `name="mine"`) != 50 || strings.Contains(body, "There are more") {
				t.Errorf("of 50 are shown:\n%.2000s", body)
			}
		}
		ota := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", strings.NewReader(`{"board":{"type":"box"}}`))
		ota.Host, ota.RemoteAddr = "192.168.1.2:8000", fmt.Sprintf("192.168.1.%d:5000", 40+i)
		ota.Header = http.Header{"Device-Id": {fmt.Sprintf("24:6f:28:aa:11:%02d", i)}, "Client-Id": {fmt.Sprintf("7f0c6a9e-1111-4222-8333-4444555566%02d", i)}, "Content-Type": {"application/json"}}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, ota); w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
	}
	body := c.ask("/console/setup/speakers", nil).Body.String()
	if n := strings.Count(body, `name="mine"`); n != 50 || !strings.Contains(body, "There are more") || !strings.Contains(body, `value="24:6f:28:aa:11:52"`) {
		t.Errorf("%d of 53 are shown:\n%.2000s", n, body)
	}
}

// TestLanguageIsKept: the language of an address is that of the pages that follow, until another one is chosen.
func TestLanguageIsKept(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "{}")
	defer a.Close()
	owned(t, a, h) // else the setup comes first
	c := &pageClient{t, h, map[string]*http.Cookie{}}
	c.expect("/console/login?lang=zh", nil, 200, `<html lang="zh">`)
	c.expect("/console/login", url.Values{"name": {"ann"}, "password": {"wrong"}}, 422, `<html lang="zh">`)
	c.expect("/console/preferences", url.Values{"to": {"/console/login?to=%2Fconsole%2Ftalk&lang=zh"}, "lang": {"en"}}, 303, "/console/login?to=%2Fconsole%2Ftalk")
	c.expect("/console/login?to=%2Fconsole%2Ftalk", nil, 200, `<html lang="en">`)
}

// TestOwnAccount: on the page of one's account tokens are made and revoked and a second factor begun; what changes anything
// wants the password again where it was shown long ago; others' pages are closed to a viewer.
func TestOwnAccount(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "{}")
	defer a.Close()
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	for name, role := range map[string]account.Role{"ann": account.Owner, "bob": account.Viewer} {
		if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: role, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
	}
	c := &pageClient{t, h, map[string]*http.Cookie{}}
	c.expect("/console/login", url.Values{"name": {"ann"}, "password": {"correct horse battery"}}, 303, "/console/overview")
	const me = "/console/users/me"
	c.expect(me, nil, 200, "There are no tokens")
	c.expect(me, url.Values{"do": {"token"}, "label": {"<b>HA</b>"}, "scope": {"read", "say"}}, 200, "It is shown only once")
	c.expect(me, url.Values{"do": {"token"}, "label": {"x"}, "scope": {"read"}, "days": {"-4"}}, 422, "A number of days")
	c.expect(me, url.Values{"do": {"token"}, "label": {"x"}, "scope": {"everything"}}, 422, "")
	c.expect(me, nil, 200, "&lt;b&gt;HA&lt;/b&gt;")
	tokens, err := a.accounts.Tokens(t.Context(), "ann")
	if err != nil || len(tokens) != 1 {
		t.Fatal(tokens, err)
	}
	c.expect(me, url.Values{"do": {"revoke"}, "head": {tokens[0].Head}}, 303, me)
	c.expect(me, nil, 200, "The token is revoked.")
	c.expect(me, url.Values{"do": {"enrol"}}, 200, "For the authenticator app")
	shown := regexp.MustCompile(`<code>[A-Z2-7]{32}</code>`).FindString(c.ask(me, url.Values{"do": {"enrol"}}).Body.String())
	wrong := c.ask(me, url.Values{"do": {"confirm"}, "code": {"000000"}}).Body.String() // what the phone is given stays there
	if shown == "" || !strings.Contains(wrong, shown) || !strings.Contains(wrong, `id="e-code"`) || !strings.Contains(wrong, "not the code that the app shows") {
		t.Errorf("after a wrong code: %.4000s", wrong)
	}
	c.expect(me+"/password", url.Values{"current": {"wrong"}, "password": {"another horse battery"}, "again": {"another horse battery"}}, 422, "")
	c.expect(me, url.Values{"do": {"fly"}}, 404, "")
	for form, page := range map[string]string{ // where a refused form stands, also who loads that again finds the page
		me + "/password": me, "/console/devices/decide": "/console/devices", "/console/devices/aa:bb/forget": "/console/devices/aa:bb",
		"/console/trials/compare/aa:bb": "/console/trials/compare", "/console/trials/voices/pick": "/console/trials/voices",
	} {
		if w := c.ask(form, nil); w.Code != 303 || w.Header().Get("Location") != page {
			t.Errorf("%s leads to %d %q", form, w.Code, w.Header().Get("Location"))
		}
	}

	c.expect("/console/users", url.Values{"do": {"invite"}, "role": {"member"}}, 200, "/console/join#")
	c.expect("/console/users", url.Values{"do": {"role"}, "name": {"ann"}, "role": {"viewer"}}, 422, "last owner")
	for _, name := range []string{"ann", "ANN"} {
		c.expect("/console/users", url.Values{"do": {"delete"}, "name": {name}}, 422, "your own account")
	}
	if n := strings.Count(c.ask("/console/users", nil).Body.String(), `value="delete"`); n != 1 {
		t.Errorf("%d accounts can be deleted, and one's own cannot", n)
	}
	c.expect("/console/users", url.Values{"do": {"disable"}, "name": {"bob"}}, 303, "/console/users")
	c.expect("/console/users", url.Values{"do": {"enable"}, "name": {"bob"}}, 303, "/console/users")
	c.expect("/console/log", nil, 200, "user.disable")
	c.expect("/console/log?before=x", nil, 400, "")
	c.expect("/console/costs?from=9999-01-01&to=0001-01-01", nil, 400, "The period must be")
	c.expect("/console/log/server?level=warn&q=%3Cscript%3E", nil, 200, "No such line")

	b := &pageClient{t, h, map[string]*http.Cookie{}}
	b.expect("/console/login", url.Values{"name": {"bob"}, "password": {"correct horse battery"}}, 303, "/console/overview")
	b.expect("/console/overview", nil, 200, "bob")
	for _, path := range []string{"/console/users", "/console/log", "/console/log/server", "/console/setup/services"} {
		b.expect(path, nil, 403, "")
	}
	b.expect("/console/users", url.Values{"do": {"invite"}, "role": {"owner"}}, 403, "")
}

// TestDevicePages: a waiting speaker is a member's by its code; others see nothing of it; names are text; what a sleeping
// speaker is told waits for it; forgetting wants its name.
func TestDevicePages(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "{auth: {pairing: ask}}")
	defer a.Close()
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	clients := map[string]*pageClient{}
	for name, role := range map[string]account.Role{"ann": account.Owner, "bob": account.Member, "cat": account.Member, "dan": account.Viewer} {
		if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: role, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
		c := &pageClient{t, h, map[string]*http.Cookie{}}
		c.expect("/console/login", url.Values{"name": {name}, "password": {"correct horse battery"}}, 303, "/console/overview")
		clients[name] = c
	}
	ask := func(id string) string {
		r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", strings.NewReader(`{"board":{"type":"<i>box</i>"},"application":{"version":"2.0.1"}}`))
		r.Header.Set("Device-Id", id)
		r.Header.Set("Client-Id", "7f0c6a9e-1111-4222-8333-444455556666")
		r.Host, r.RemoteAddr = "127.0.0.1:8000", "192.168.1.9:9"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		_, code, _ := strings.Cut(w.Body.String(), `"code":"`)
		code, _, _ = strings.Cut(code, `"`)
		return code
	}
	const id, all = "aa:bb:cc:dd:ee:04", "/console/devices"
	code := ask(id)
	ann, bob, cat, dan := clients["ann"], clients["bob"], clients["cat"], clients["dan"]
	ann.expect(all, nil, 200, code)
	ann.expect(all, nil, 200, "&lt;i&gt;box&lt;/i&gt;")
	for _, c := range []*pageClient{bob, dan} {
		if w := c.ask(all, nil); strings.Contains(w.Body.String(), code) {
			t.Error("the code is shown to who has not heard it")
		}
	}
	bob.expect(all, url.Values{"code": {"000000"}}, 422, "asking another server")
	dan.expect(all, url.Values{"code": {code}}, 403, "")
	bob.expect(all+"/decide", url.Values{"device": {id}, "do": {"accept"}}, 403, "")
	bob.expect(all, url.Values{"code": {code}}, 303, all+"/"+id)
	for _, c := range []*pageClient{cat, dan} {
		c.expect(all+"/"+id, nil, 403, "")
		c.expect(all+"/"+id, url.Values{"do": {"say"}, "words": {"boo"}}, 403, "")
	}
	bob.expect(all+"/"+id, url.Values{"do": {"rename"}, "name": {`"><script>x</script>`}}, 303, all)
	bob.expect(all+"/"+id, nil, 200, "&#34;&gt;&lt;script&gt;x")
	bob.expect(all+"/"+id, url.Values{"do": {"rename"}, "name": {"Kitchen"}}, 303, all)
	bob.expect(all+"/"+id, url.Values{"do": {"say"}, "words": {"Dinner is ready"}}, 303, all)
	bob.expect(all+"/"+id, nil, 200, "hears this at its next contact")
	bob.expect(all+"/"+id, nil, 200, "Queued")
	bob.expect(all+"/"+id, url.Values{"do": {"say"}, "words": {""}}, 422, "")
	bob.expect(all+"/"+id, url.Values{"do": {"listen"}}, 422, "not connected")
	bob.expect(all+"/"+id, url.Values{"do": {"agent"}, "agent": {"nobody"}}, 422, "")
	bob.expect(all+"/"+id, url.Values{"do": {"refuse"}}, 422, "")
	bob.expect(all+"/"+id+"/forget", url.Values{"typed": {"Kitchen"}}, 403, "")
	ann.expect(all+"/"+id+"/forget", url.Values{"typed": {"kitchin"}}, 422, "Type Kitchen")
	ann.expect(all+"/"+id+"/forget", url.Values{"typed": {"Kitchen"}}, 303, all)
	ann.expect(all+"/"+id, nil, 404, "")
	ann.expect("/console/log", nil, 200, "device.forget")
}
