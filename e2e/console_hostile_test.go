package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"xiaozhi/internal/browsertest"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// hostile is what somebody says, writes or sends who wants a page to do something else.
const hostile = `<img src=x onerror="window.__evil=1"><script>window.__evil=1</script>{{.}}${7*7}'"--></textarea></title>`

// TestHostileWords: the name of a device, its board, what is said, what a tool is called, says of itself and answers, what a service
// complains of, the label of a token and what is searched for are text on every page. No script of theirs runs, nothing is loaded,
// and the browser reports nothing against the rules of the page.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	b := browsertest.Need(t, browser)
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat,
		openaitest.Calls(openaitest.Call{ID: "c1", Name: "self_evil", Arguments: `{"x":"` + strings.ReplaceAll(hostile, `"`, `\"`) + `"}`}),
		openaitest.Text("You said "+hostile), openaitest.Failure(http.StatusUnauthorized, hostile))
	s := start(t, setup{env: append(cloudEnv(cloud), "XIAOZHI_LLM=openai"), config: "auth: {pairing: ask}\nasr: [cloud]\ntts: [cloud]\n" + cloudSection(cloud)})
	owner := s.own(ctx, t)
	tool := devicetest.Tool{
		Name: "self.evil", Description: hostile, Properties: []devicetest.Property{{Name: "x", Type: "string"}},
		Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
			return devicetest.Result{Text: hostile}, nil
		},
	}
	o := devicetest.Options{DeviceID: newDeviceID(), Tools: []devicetest.Tool{tool}}
	d := s.speaker(t, o, s.accepted(t))
	s.waitForTools(ctx, t, d)
	ask(ctx, t, d, "please do it "+hostile)
	ask(ctx, t, d, "please do it again "+hostile)
	tab := b.Tab(t, talkTime)
	show(tab, owner, loopback)
	v := &visitor{Tab: tab, t: t, s: s, host: loopback, look: look{lang: "en"}}
	v.Cookie(loopback, "lang", "en")
	v.open("devices/" + o.DeviceID)
	v.fill("words", hostile)
	v.press("devices/say-now")
	v.reads("devices/said")
	v.fill("name", hostile[:60])
	v.press("devices/rename")
	v.reads("devices/renamed")
	v.open("users/me")
	v.pressWhat(`[...document.querySelectorAll("main summary")].find((e) => e.innerText === "` + v.words("people/new-token") + `")`)
	v.fill("label", hostile[:60])
	v.pressWhat(`document.getElementById("c-scope-read")`)
	v.press("people/make-token")
	v.sees(hostile[:60])
	s.knock(ctx, t, http.MethodPost, "/xiaozhi/ota/", `{"application":{"version":"`+strings.ReplaceAll(hostile, `"`, `\"`)+`"},"board":{"type":"`+strings.ReplaceAll(hostile, `"`, `\"`)+`","ssid":"<b>x"}}`,
		"Device-Id: "+newDeviceID(), "Client-Id: <i>x", "Content-Type: application/json", "User-Agent: "+hostile)
	talk := s.firstTalk(ctx, t, owner)
	asked := url.QueryEscape(hostile)
	shown := 0
	for _, path := range append(pages, "devices/"+o.DeviceID, "doctor/"+o.DeviceID, "doctor/"+o.DeviceID+"?sent=ota", "conversations/"+talk, "devices?q="+asked, "conversations?text="+asked,
		"tools?q="+asked, "tools/calls", "agents?q="+asked, "services/add?q="+asked, "doctor?q="+asked, "log/server?q="+asked, "login?to="+asked, "agents/"+asked, asked) {
		v.open(path)
		if v.Number(`Number(Boolean(window.__evil || document.querySelector("img[src=x], main script:not([src])")))`) != 0 {
			t.Errorf("%s does what others have written", path)
		}
		if strings.Contains(v.Text("document.body.textContent"), `onerror="window`) {
			shown++
		}
	}
	if shown < 8 {
		t.Errorf("only %d pages show what others have written", shown)
	}
	v.quiet()
}

// quiet is Clean for a journey on which pages are asked for that are not there.
func (v *visitor) quiet() {
	v.t.Helper()
	for _, what := range v.Trouble() {
		if !strings.Contains(what, "Failed to load resource: the server responded with a status of 4") {
			v.t.Errorf("the browser complains: %s", what)
		}
	}
}

// firstTalk waits until a talk is written, and returns its id.
func (s *server) firstTalk(ctx context.Context, t *testing.T, owner string) string {
	t.Helper()
	for {
		page := s.http(ctx, t, "GET /console/conversations", "", s.with(owner)).body
		if _, rest, ok := strings.Cut(page, `<a href="/console/conversations/`); ok {
			id, _, _ := strings.Cut(rest, `"`)
			return id
		}
		if ctx.Err() != nil {
			t.Fatal("no talk was written")
		}
	}
}
