package app

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"xiaozhi/internal/account"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/roster"
	rosterstored "xiaozhi/internal/roster/stored"
)

// enter logs people in, each with a role, as browsers without script.
func enter(t *testing.T, a *App, h http.Handler, people map[string]account.Role) map[string]*pageClient {
	t.Helper()
	clients := map[string]*pageClient{}
	for name, role := range people {
		if err := a.accounts.Add(t.Context(), account.Actor{Name: "test", Via: account.ViaCommand}, account.NewUser{Name: name, Role: role, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
		c := &pageClient{t, h, map[string]*http.Cookie{}}
		c.expect("/console/login", url.Values{"name": {name}, "password": {"correct horse battery"}}, 303, "/console/overview")
		clients[name] = c
	}
	return clients
}

// hostile are texts that do harm where they are not treated as text.
var hostile = []string{`"><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `{{.Site}}`, `{{printf "x"}}`, strings.Repeat("长", 20_000), "a\x00b", "\u202e", `../../etc/passwd`}

// TestAgentPages: an agent is made from the gallery, tried, saved, compared with what it was, restored, deleted and brought back;
// mistakes stand at their fields, with what was typed; who has changed it meanwhile is told.
func TestAgentPages(t *testing.T) {
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	a, h := builtApp(t, t.TempDir(), "tts: [c]\nagents: {fixed: {language: en, prompt_text: From a file.}}\nproviders:\n  c: {type: openai, api_key: k, model: m, base_url: '"+cloud.URL()+"'}\n")
	defer a.Close()
	people := enter(t, a, h, map[string]account.Role{"ann": account.Owner, "bea": account.Owner, "bob": account.Member, "cat": account.Member, "vera": account.Viewer})
	ann, bea := people["ann"], people["bea"]
	const all, begin, pirate = "/console/agents", "/console/agents/-/new", "/console/agents/pirate"

	ann.expect(all, nil, 200, "storyteller")
	ann.expect(all+"?q=fix", nil, 200, `href="/console/agents/fixed"`)
	ann.expect(all+"?q=zzz", nil, 200, "No agent is like that")
	ann.expect(begin, nil, 200, "Quiz master")
	ann.expect(begin+"?lang=zh", nil, 200, "问答主持人")
	delete(ann.cookies, "lang")
	ann.expect(begin+"?template=quiz", nil, 200, "the cheerful master of a quiz")
	ann.expect(begin+"?template=storyteller", nil, 200, "{{emojiList}}")
	ann.expect(begin+"?copy=nobody", nil, 404, "")

	form := func(pairs ...string) url.Values {
		f := url.Values{"do": {"save"}, "from": {"own"}, "long-text": {"You are a pirate, {{assistant_name}}.\r\nSay arr."}, "tools-mode": {"all"}, "language": {"en"}}
		for i := 0; i < len(pairs); i += 2 {
			f.Set(pairs[i], pairs[i+1])
		}
		return f
	}
	for _, w := range []struct {
		form url.Values
		want string
	}{
		{form("name", ""), "An agent needs a name"},
		{form("name", "a/b"), "no slash"},
		{form("name", "default"), "choose another name"},
		{form("name", "Teacher"), "choose another name"},
		{form("name", "x", "long-text", "One.\n\nHello {{asistant_name}}."), "Line 3: there is no variable {{asistant_name}}. Did you mean {{assistant_name}}?"},
		{form("name", "x", "long-text", " "), "Write a prompt"},
		{form("name", "x", "llm-0", "no-such-service"), `id="e-llm-0"`},
		{form("name", "x", "language", "xx-no-such-language-at-all"), "e-"},
		{form("name", "x", "memory", "<b>"), "&lt;b&gt;"},
	} {
		w.form.Set("wake_words", "typed and kept")
		ann.expect(begin, w.form, 422, w.want)
		ann.expect(begin, w.form, 422, "typed and kept")
	}
	ann.expect(begin, form("name", "pirate", "note", "first"), 303, pirate)
	if doc, ok := a.crew.roster.Get("pirate"); !ok || doc.Doc != `{"language":"en","prompt_text":"You are a pirate, {{assistant_name}}.\nSay arr."}` || doc.Note != "first" {
		t.Errorf("%+v", doc)
	}
	ann.expect(pirate, nil, 200, "Say arr.")
	ann.expect(pirate, form("do", "preview", "preview-words", "who are you", "base", "1"), 200, "Preview as sent")
	ann.expect(pirate, form("do", "preview", "preview-words", "who are you", "base", "1"), 200, "You are a pirate, 小智.")
	ann.expect(pirate, form("do", "listen", "listen-words", "Arr!", "base", "1", "voice", "alloy"), 200, "/api/v1/sounds/")
	if spoken := cloud.Requests(openaitest.Speak); len(spoken) != 1 || spoken[0].JSON()["input"] != "Arr!" || spoken[0].JSON()["voice"] != "alloy" {
		t.Errorf("%d sentences were spoken", len(spoken))
	}
	ann.expect(pirate, form("do", "listen", "listen-words", strings.Repeat("a", 301), "base", "1"), 422, "300 characters")

	// Two people: who comes second sees what the first has done, and may put theirs on top.
	bea.expect(pirate, form("base", "1", "voice", "alloy", "note", "by bea"), 303, pirate)
	stale := form("base", "1", "long-text", "You are a pirate.\nSay ahoy.", "note", "by ann")
	ann.expect(pirate, form("base", "newest", "long-text", "Mine."), 422, "bea has saved revision 2 meanwhile") // which is the revision of nothing
	ann.expect(pirate, stale, 422, "bea has saved revision 2 meanwhile")
	ann.expect(pirate, stale, 422, "<ins>+ Say ahoy.</ins>")
	ann.expect(pirate, stale, 422, `name="base" value="2"`)
	if now, _ := a.crew.roster.Get("pirate"); now.Rev != 2 {
		t.Errorf("revision %d was saved over another's", now.Rev)
	}
	stale.Set("base", "2")
	ann.expect(pirate, stale, 303, pirate)
	ann.expect(pirate+"/3", nil, 200, "<del>- Say arr.</del>")
	ann.expect(pirate+"/2", nil, 200, "Restore this revision")
	ann.expect(pirate+"/9", nil, 404, "")
	ann.expect(pirate+"/x", nil, 404, "")
	ann.expect(pirate+"/2", url.Values{}, 303, pirate)
	if now, _ := a.crew.roster.Get("pirate"); now.Rev != 4 || !strings.Contains(now.Doc, "alloy") {
		t.Errorf("%+v", now)
	}
	ann.expect(pirate, url.Values{"do": {"delete"}}, 303, all+"?undo=pirate")
	ann.expect(all+"?undo=pirate", nil, 200, `action="/console/agents/pirate/4"`)
	ann.expect(pirate, nil, 404, "")
	people["bob"].expect(all+"?undo=pirate", nil, 200, "storyteller")
	if w := people["bob"].ask(all+"?undo=pirate", nil); strings.Contains(w.Body.String(), "pirate/4") {
		t.Error("a member is offered to bring back what is everybody's")
	}
	ann.expect(pirate+"/4", url.Values{}, 303, pirate)
	ann.expect(pirate, nil, 200, "Revision 5")
	ann.expect(pirate, url.Values{"do": {"dance"}}, 404, "")

	// That of a file is shown with its place; that of a prompt is everybody's until somebody saves it.
	ann.expect("/console/agents/fixed", nil, 200, "config.yaml:")
	ann.expect("/console/agents/fixed", nil, 200, "From a file.")
	ann.expect("/console/agents/fixed", form(), 422, "")
	ann.expect("/console/agents/storyteller", form("base", "0", "from", "named", "prompt", "teacher"), 303, "/console/agents/storyteller")

	fields := []string{"long-text", "voice", "language", "prompt", "memory", "record", "wake_words", "tools-allow", "tools-deny", "asr-0", "tts-1", "note", "base", "listen-speed", "preview-device", "shown", "tool", "tools-mode", "from"}
	for i, text := range hostile {
		f := form("name", text, "do", []string{"save", "preview", "listen"}[i%3])
		for _, field := range fields {
			f.Set(field, text)
		}
		for range 2 {
			if w := ann.ask(begin, f); w.Code != 200 && w.Code != 422 && w.Code != 413 || strings.Contains(w.Body.String(), "<script>alert") || strings.Contains(w.Body.String(), "<img src=x") {
				t.Errorf("%.20q: %d", text, w.Code)
			}
			f.Set("from", "own")
		}
	}
	memberAgents(t, a, people)

	// A long list is paged by name.
	for i := range 60 {
		if err := rosterstored.New(a.stored).Save(t.Context(), roster.Revision{Agent: fmt.Sprintf("many-%02d", i), Rev: 1, Doc: `{"language":"en"}`}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.crew.roster.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	ann.expect(all+"?q=many", nil, 200, `href="/console/agents?after=many-49&amp;q=many"`)
	ann.expect(all+"?after=many-49&q=many", nil, 200, "many-59")
	if w := ann.ask(all+"?after=many-49&q=many", nil); strings.Contains(w.Body.String(), "many-49<") || strings.Contains(w.Body.String(), "many-60") {
		t.Error("the second page holds what is on the first")
	}
}

// memberAgents: members make agents of their own, which no other member hears of, and change nobody else's.
func memberAgents(t *testing.T, a *App, people map[string]*pageClient) {
	t.Helper()
	bob, cat := people["bob"], people["cat"]
	own := url.Values{"name": {"bobs"}, "do": {"save"}, "from": {"own"}, "long-text": {"A secret of bob."}}
	people["vera"].expect("/console/agents", nil, 403, "")
	bob.expect("/console/agents/-/new", own, 303, "/console/agents/bobs")
	bob.expect("/console/agents/bobs", nil, 200, "A secret of bob.")
	cat.expect("/console/agents/bobs", nil, 404, "")
	cat.expect("/console/agents/bobs/1", nil, 404, "")
	cat.expect("/console/agents/-/new?copy=bobs", nil, 404, "")
	cat.expect("/console/agents/-/new", own, 422, "choose another name")
	cat.expect("/console/agents/bobs", url.Values{"do": {"delete"}}, 403, "")
	bob.expect("/console/agents/pirate", nil, 200, "Duplicate it to have one of your own")
	bob.expect("/console/agents/pirate", own, 403, "")
	bob.expect("/console/agents/pirate/1", url.Values{}, 403, "")
	bob.expect("/console/agents/-/new?copy=pirate", nil, 200, "pirate (copy)")
	people["ann"].expect("/console/agents/bobs", nil, 200, "A secret of bob.")
	bob.expect("/console/agents/bobs", url.Values{"do": {"delete"}}, 303, "undo=bobs")
	cat.expect("/console/agents/-/new", own, 422, "choose another name")
	bob.expect("/console/agents/bobs/1", url.Values{}, 303, "/console/agents/bobs")
	if agent, ok := a.crew.roster.Get("bobs"); !ok || agent.Owner == "" {
		t.Errorf("%+v", agent)
	}
}
