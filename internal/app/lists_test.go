package app

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/roster"
	"xiaozhi/store"
)

// walk follows a list from page to page, and returns what rows matches of each: its first group.
func (c *pageClient) walk(path, part string, rows *regexp.Regexp) (pages [][]string) {
	c.t.Helper()
	next := regexp.MustCompile(`<nav class="pager"[^>]*><a class="button second" href="([^"#]*)`)
	for path != "" && len(pages) < 9 {
		w := c.ask(path, nil)
		if w.Code != http.StatusOK {
			c.t.Fatalf("%s: %d", path, w.Code)
		}
		body := w.Body.String()
		if part != "" {
			_, body, _ = strings.Cut(body, part)
			body, _, _ = strings.Cut(body, "</section>")
		} else if body, _, _ = strings.Cut(body, "<section"); !strings.Contains(body, "<main") {
			c.t.Fatal("nothing is before the first part")
		}
		var page []string
		for _, m := range rows.FindAllStringSubmatch(body, -1) {
			page = append(page, m[1])
		}
		pages = append(pages, page)
		path = ""
		if m := next.FindStringSubmatch(body); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	return pages
}

// TestListsOfPeople: who has many people, invitations, sessions or tokens finds each of them on one page or another, and by a search.
func TestListsOfPeople(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "{}")
	defer a.Close()
	c := enter(t, a, h, map[string]account.Role{"olga": account.Owner})["olga"]
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	for i := range 59 {
		if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: fmt.Sprintf("p%02d", i), Role: account.Viewer, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.accounts.NewToken(t.Context(), by, "olga", account.NewToken{Label: fmt.Sprintf("label-%02d", i), Scopes: []account.Scope{account.Read}}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.accounts.Invite(t.Context(), by, "", account.Member); err != nil {
			t.Fatal(err)
		}
		if i < 20 {
			if _, err := a.accounts.Login(t.Context(), "olga", account.Proof{Password: "correct horse battery"}, account.Origin{Browser: fmt.Sprintf("curl/%d", i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	const people, me = "/console/users", "/console/users/me"
	for _, l := range []struct {
		path, part, row string
		pages           []int
	}{
		{people, "", `<strong>(\w+)</strong>`, []int{50, 10}},
		{people, `id="invitations"`, `name="id" value="(\w+)"`, []int{50, 9}},
		{me, `id="sessions"`, `title="(curl[^"]*)"`, []int{20}},
		{me, `id="tokens"`, `<li><div>(label-\d+)<br>`, []int{50, 9}},
		{people + "?q=owner", "", `<strong>(\w+)</strong>`, []int{1}},
		{me + "?sessions-q=CURL/7", `id="sessions"`, `title="(curl[^"]*)"`, []int{1}},
		{me + "?tokens-q=label-1", `id="tokens"`, `<li><div>(label-\d+)<br>`, []int{10}},
	} {
		var all []string
		for i, page := range c.walk(l.path, l.part, regexp.MustCompile(l.row)) {
			if all = append(all, page...); i >= len(l.pages) || len(page) != l.pages[i] {
				t.Errorf("%s %s: page %d has %d rows, not %v", l.path, l.part, i+1, len(page), l.pages)
			}
		}
		once := slices.Clone(all)
		slices.Sort(once)
		if once = slices.Compact(once); len(once) != len(all) {
			t.Errorf("%s %s: %d rows, %d of them once", l.path, l.part, len(all), len(once))
		}
	}
	c.expect(people+"?q=nobody+like+this", nil, 200, "Nothing matches your search.")
	c.expect(people+"?q=nobody+like+this", nil, 200, `value="nobody like this"`)
	c.expect(me+"?tokens-q=nothing", nil, 200, "Nothing matches your search.")
	c.expect(me+"?tokens-q=lamp&tokens-after=soon", nil, 400, `value="lamp"`)
	c.expect(me+"?tokens-after=soon", nil, 400, "There is no such place in the list")
	c.expect(people+"?lang=zh&invitations-after="+url.QueryEscape("\x00"), nil, 400, "列表里没有这个位置")
}

// TestPlacesInLists: an address that names no place in a list, or asks for what cannot be, is answered with 400 in each list alike; what
// was searched for is still there, and a way back to the beginning.
func TestPlacesInLists(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "{}")
	defer a.Close()
	c := enter(t, a, h, map[string]account.Role{"olga": account.Owner})["olga"]
	for _, list := range []string{
		"devices?q=lamp&after=soon", "conversations?text=lamp&before=soon", "conversations?text=lamp&slower=soon", "tools?q=lamp&source=soon", "tools/calls?tool=lamp&before=soon",
		"tools/calls?tool=lamp&failed=soon", "doctor?q=lamp&before=soon", "users?q=lamp&after=%00", "log?q=lamp&before=soon", "log/server?q=lamp&after=soon", "log/server?q=lamp&level=soon",
		"settings?q=lamp&after=%00", "settings/-/revisions?q=lamp&before=soon", "settings/-/revisions?q=lamp&before=-1", "tools/servers?q=lamp&after=%00", "agents?q=lamp&after=%00", "tools?q=lamp&after=soon", "users/me?tokens-q=lamp&tokens-after=soon",
	} {
		page, _, _ := strings.Cut(list, "?")
		w := c.ask("/console/"+list, nil)
		if body := w.Body.String(); w.Code != 400 || !strings.Contains(body, `value="lamp"`) || !strings.Contains(body, `role="alert"`) || !strings.Contains(body, `<a href="/console/`+page) {
			_, main, _ := strings.Cut(body, "<main")
			t.Errorf("%s: %d\n%.2000s", list, w.Code, main)
		}
	}
}

// TestLongLists: what was done, the settings, the versions of an agent, what devices have cost and the server's log are walked and searched from the newest to the oldest.
func TestLongLists(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "{}")
	defer a.Close()
	c := enter(t, a, h, map[string]account.Role{"olga": account.Owner})["olga"]
	for i := range 700 {
		if err := a.stored.Audit.Add(t.Context(), store.Act{Who: "robot", Via: "test", Act: fmt.Sprintf("lamp.%d", i%7), Object: fmt.Sprintf("m%03d", i), OK: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 60 {
		if _, err := a.crew.roster.Save(t.Context(), roster.Author{Name: "olga", Note: fmt.Sprintf("arr %d.", i)}, "pirate", i, fmt.Appendf(nil, `{"prompt_text":"Say arr %d."}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 60 {
		talk, device := fmt.Sprint("c", i), fmt.Sprintf("spender-%02d", i)
		if err := a.stored.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{{ID: device, Address: device, State: store.DevicePaired}}}); err != nil {
			t.Fatal(err)
		}
		a.stored.Log.Put(&store.Entry{
			Conversation: store.Conversation{ID: talk, DeviceID: device, BeganAt: time.Now()},
			Turn:         store.Turn{ID: talk + "-1", Seq: 1, At: time.Now(), DeviceID: device},
		})
	}
	if err := a.stored.Log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		a.log.Info("a lamp blinks", "n", i, "odd", i%2)
	}
	for _, l := range []struct {
		path, row string
		pages     []int
	}{
		{"/console/log?q=LAMP.3", `<td[^>]*>(m\d+) `, []int{50, 50}},
		{"/console/log?q=m001", `<td[^>]*>(m\d+) `, []int{1}},
		{"/console/log/server?q=blinks", `blinks&#34; n=(\d+)`, []int{500, 500, 100}},
		{"/console/log/server?q=odd%3D1", `blinks&#34; n=(\d+)`, []int{500, 50}},
		{"/console/agents/pirate", `<a href="/console/agents/pirate/(\d+)">`, []int{50, 10}},
		{"/console/agents/pirate?past-q=arr+7", `<a href="/console/agents/pirate/(\d+)">`, []int{1}},
		{"/console/costs?from=" + time.Now().AddDate(0, 0, -2).Format(time.DateOnly), `<td>(spender-\d+)<`, []int{50, 10}},
		{"/console/settings?q=a", `<a href="/console/settings/\w+#k-([^"]+)"`, nil},
	} {
		part := "<main"
		if strings.Contains(l.path, "pirate") {
			part = `id="past"`
		} else if strings.Contains(l.path, "costs") {
			part = `id="device"`
		}
		var all []string
		pages := c.walk(l.path, part, regexp.MustCompile(l.row))
		if len(pages) < max(2, len(l.pages)) && len(l.pages) != 1 {
			t.Errorf("%s: %d pages", l.path, len(pages))
		}
		for i, page := range pages {
			all = append(all, page...)
			if l.pages != nil && (i >= len(l.pages) || len(page) != l.pages[i]) || len(page) == 0 {
				t.Errorf("%s: page %d has %d rows, not %v", l.path, i+1, len(page), l.pages)
			}
		}
		if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Errorf("%s: of %d rows some stand there twice", l.path, len(all))
		}
	}
	c.expect("/console/agents/pirate?past-after=soon", nil, 400, "no such place")
	c.expect("/console/log?q=登录&lang=zh", nil, 200, "登录 <code")
	c.expect("/console/log?q=nothing+like+this&lang=en", nil, 200, "Nothing matches your search.")
}
