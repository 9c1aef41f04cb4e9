package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/roster/recordstest"
	rosterstored "xiaozhi/internal/roster/stored"
	"xiaozhi/internal/testall"
	"xiaozhi/mcp/local"
	"xiaozhi/prompts"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

func TestStoredAgents(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	var last *store.Store
	recordstest.Run(t, [2]string{kitchen, attic}, "u", func(t *testing.T) roster.Records {
		if last != nil {
			last.Close()
		}
		var err error
		if last, err = store.Open(t.Context(), store.Options{Path: path}); err != nil {
			t.Fatal(err)
		}
		devices := []store.Identity{{ID: kitchen, Address: kitchen, State: store.DevicePaired}, {ID: attic, Address: attic, State: store.DevicePaired}}
		if err := last.Devices.Commit(t.Context(), store.DeviceChange{Save: devices}); err != nil {
			t.Fatal(err)
		}
		if err := last.Users.Add(t.Context(), store.User{ID: "u", Name: "anna", Role: store.Member}); err != nil && !errors.Is(err, store.ErrExists) {
			t.Fatal(err)
		}
		return rosterstored.New(last)
	})
	last.Close()
}

// fakeShop has engines for agents by the first name of their chain of models.
type fakeShop struct {
	mu    sync.Mutex
	ready company
}

func (s *fakeShop) Remake(_ context.Context, cfg *config.Config, _ *prompts.Set, _ string) (engines.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]engines.Chains{}
	for name, p := range cfg.Agents {
		if len(p.LLM) > 0 {
			all[name] = s.ready[p.LLM[0]]
		}
	}
	return engines.Set{Agents: all}, nil
}

// What people change of an agent counts from the next turn on, without a new connection: prompt, voice and model. So
// does the agent that a device is given, and taking it away again.
func TestAgentChangesNextTurn(t *testing.T) {
	inMemory(t, script{}, func(ctx context.Context, t *testing.T, h *harness) {
		shop := &fakeShop{ready: company{}}
		shop.ready.engage("openai")
		shop.ready.engage("rules", providertest.Say("Second."), providertest.Say("Third."))
		h.app.crew.shop = shop
		r, by := h.app.crew.roster, roster.Author{Name: "anna"}
		set := func(doc string) {
			t.Helper()
			if _, err := r.Patch(ctx, by, "pirate", []byte(doc)); err != nil {
				t.Fatal(err)
			}
		}
		set(`{"language":"en","prompt":"storyteller","llm":["openai"],"tts":["openai"],"voice":"alto"}`)
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen})
		if err := r.Assign(ctx, kitchen, "pirate"); err != nil {
			t.Fatal(err)
		}
		ask(ctx, t, d, "who are you")
		set(`{"prompt":"teacher","llm":["rules"],"voice":"bass"}`)
		ask(ctx, t, d, "who are you")
		if err := r.Delete(ctx, "pirate"); err != nil {
			t.Fatal(err)
		}
		ask(ctx, t, d, "who are you")
		if _, err := r.Restore(ctx, by, "pirate", 2); err != nil {
			t.Fatal(err)
		}
		ask(ctx, t, d, "who are you")
		if got := shop.ready.said("openai"); !slices.Equal(got, []string{"alto: I am openai."}) {
			t.Errorf("the first said %q", got)
		}
		if got := shop.ready.said("rules"); !slices.Equal(got, []string{"bass: Second.", "bass: Third."}) {
			t.Errorf("the second said %q", got)
		}
		for name, want := range map[string]string{"openai": "story", "rules": "language teacher"} {
			if asked := shop.ready[name].LLM.(*providertest.LLM).Asked()[0].Request; !strings.Contains(asked.Messages[0].Content, want) {
				t.Errorf("the prompt of %s is %s", name, asked.Messages[0].Content)
			}
		}
		if n := len(h.tts.Spoken()); n != 1 {
			t.Errorf("the voice of all said %d sentences while the agent was deleted", n)
		}
		if !strings.Contains(h.log.String(), "the agent of a device is gone") || !strings.Contains(h.log.String(), kitchen) {
			t.Error("nobody says that the device has another agent now")
		}
	})
}

// A turn that goes on is finished by the agent that began it: model and voice of the next one are the other's.
func TestAgentChangesDuringTurn(t *testing.T) {
	inMemory(t, script{}, func(ctx context.Context, t *testing.T, h *harness) {
		shop := &fakeShop{ready: company{}}
		shop.ready.engage("openai")
		shop.ready.engage("rules")
		shop.ready["openai"].LLM.(*providertest.LLM).Script = []providertest.Step{providertest.Say("This is one. ", "This is two. ", "This is three.").After(time.Second)}
		h.app.crew.shop = shop
		r, by := h.app.crew.roster, roster.Author{Name: "anna"}
		set := func(name string) {
			t.Helper()
			if _, err := r.Set(ctx, by, "pirate", fmt.Appendf(nil, `{"language":"en","llm":[%q],"tts":["openai"],"voice":%q}`, name, name)); err != nil {
				t.Fatal(err)
			}
		}
		set("openai")
		if err := r.Assign(ctx, kitchen, "pirate"); err != nil {
			t.Fatal(err)
		}
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen})
		if err := d.Detect("tell me something"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond) // the first sentence is there
		if got := shop.ready.said("openai"); len(got) != 1 {
			t.Fatalf("said before the change: %q", got)
		}
		set("rules")
		time.Sleep(10 * time.Second)
		ask(ctx, t, d, "tell me something")
		if got := shop.ready.said("openai"); len(got) < 2 || !strings.HasSuffix(strings.ReplaceAll(strings.Join(got, " "), " openai:", ""), "openai: This is one. This is two. This is three.") {
			t.Errorf("the turn that went on said %q", got)
		}
		if got := shop.ready.said("rules"); !slices.Equal(got, []string{"rules: I am rules."}) {
			t.Errorf("the next turn said %q", got)
		}
	})
}

// Agents change while twenty devices talk in turn: each turn is answered by one agent, and no device is disturbed.
func TestAgentChangesUnderLoad(t *testing.T) {
	inMemory(t, script{}, func(ctx context.Context, t *testing.T, h *harness) {
		shop := &fakeShop{ready: company{}}
		for _, name := range []string{"openai", "rules"} {
			shop.ready[name] = engines.Chains{
				LLM: &providertest.LLM{Label: name, Script: slices.Repeat([]providertest.Step{providertest.Say("I am " + name + ".")}, 400)},
				TTS: &providertest.TTS{Label: name, Script: slices.Repeat([]providertest.Speech{{Length: 300 * time.Millisecond}}, 400)},
			}
		}
		h.app.crew.shop = shop
		r, by := h.app.crew.roster, roster.Author{Name: "anna"}
		names := []string{"openai", "rules"}
		set := func(i int) {
			if _, err := r.Patch(ctx, by, "pirate", fmt.Appendf(nil, `{"language":"en","llm":[%q],"tts":["openai"],"voice":%q}`, names[i%2], names[i%2])); err != nil {
				t.Error(err)
			}
		}
		set(0)
		devices, turns := testall.Pick(20, 8), testall.Pick(5, 4)
		var all, changes sync.WaitGroup
		for i := range devices {
			id := fmt.Sprintf("24:6f:28:aa:20:%02x", i)
			if err := r.Assign(ctx, id, "pirate"); err != nil {
				t.Fatal(err)
			}
			d := h.speaker(ctx, t, devicetest.Options{DeviceID: id})
			all.Go(func() {
				for range turns {
					ask(ctx, t, d, "who are you")
				}
			})
		}
		talking, over := context.WithCancel(ctx)
		changes.Go(func() {
			for i := 1; talking.Err() == nil; i++ {
				set(i)
				time.Sleep(70 * time.Millisecond)
			}
		})
		all.Wait()
		over()
		changes.Wait()
		n := 0
		for _, name := range names {
			for _, line := range shop.ready.said(name) {
				if n++; line != name+": I am "+name+"." {
					t.Errorf("%s said %q", name, line)
				}
			}
		}
		if n != devices*turns {
			t.Errorf("%d answers to %d questions", n, devices*turns)
		}
	})
}

// askAPI asks the app as a program with a token does.
func askAPI(h http.Handler, method, path, token, body string) (status int, answer string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8000"
	r.RemoteAddr = "192.168.7.9:1"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// cheap hashes of passwords take the race detector a thousandth of the time; internal/account tests those of the server.
var cheap = account.Cost{Memory: 64, Passes: 1, Lanes: 1}

// builtApp is the whole program of a config, without listening.
func builtApp(t *testing.T, data, settings string) (*App, http.Handler) {
	t.Helper()
	cfg := mustLoadText(t, settings)
	a, err := Build(t.Context(), cfg, Options{PasswordCost: cheap, Data: data, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := a.routes()
	if err != nil {
		t.Fatal(err)
	}
	return a, h
}

// Only who may change agents does. What they did is in the audit, under their name.
func TestAgentRights(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "{}")
	defer a.Close()
	tokens := map[string]string{"nobody": "none", "admin-token": strings.Repeat("ab", 32)}
	a.web.guard.SetAdmin(tokens["admin-token"])
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	for _, role := range account.Roles() {
		name := "the-" + string(role)
		if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: role, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
		for _, scope := range []account.Scope{account.Admin, account.Read} {
			token, err := a.accounts.NewToken(t.Context(), by, name, account.NewToken{Label: "x", Scopes: []account.Scope{scope}})
			if err != nil {
				t.Fatal(err)
			}
			tokens[string(role)+" "+string(scope)] = token
		}
	}
	member, err := a.stored.Users.Named(t.Context(), "the-member")
	if err != nil {
		t.Fatal(err)
	}
	mine := store.Identity{ID: kitchen, Address: kitchen, State: store.DevicePaired}
	if err := a.stored.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{mine}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.stored.Devices.Edit(t.Context(), kitchen, func(d *store.Device) error { d.OwnerID = member.ID; return nil }); err != nil {
		t.Fatal(err)
	}
	const looks, changes, own = 1, 2, 4
	may := map[string]int{"nobody": 0, "viewer admin": 0, "viewer read": 0, "member read": looks, "owner read": looks, "member admin": looks | own, "owner admin": looks | changes | own, "admin-token": looks | changes | own}
	if len(may) != len(tokens) {
		t.Fatal("a caller is not walked")
	}
	agents := a.crew.api(a.web.guard, a.stored)
	for _, route := range append(agents.Routes(), ownDevices(a, agents.DeviceOwner)...) {
		method, path, _ := strings.Cut(route.Pattern, " ")
		if strings.Contains(path, "/devices/{id}") && !route.Need.Own {
			continue // decisions of owners about devices, which TestRights walks
		}
		needs, body := changes, `{}`
		switch {
		case method == http.MethodGet:
			needs = looks
		case strings.HasSuffix(path, "/devices"): // a code, which is guessed at
			needs = own
		case strings.Contains(path, "{id}"):
			needs, body = own, `{"agent":"teacher","name":"Kitchen"}`
		case strings.HasSuffix(path, "restore"):
			body = `{"rev":1}`
		}
		path = strings.NewReplacer("{name}", "pirate", "{id}", kitchen).Replace(path)
		for who, rights := range may {
			status, answer := askAPI(h, method, path, tokens[who], body)
			refused := status == http.StatusUnauthorized || status == http.StatusForbidden
			if refused != (rights&needs == 0) || status >= 500 {
				t.Errorf("%s asks %s: %d %s", who, route.Pattern, status, answer)
			}
		}
	}
	for who, want := range map[string]bool{"owner read": true, "member read": false} {
		if _, answer := askAPI(h, http.MethodGet, roster.Path, tokens[who], ""); strings.Contains(answer, kitchen) != want {
			t.Errorf("%s is told of devices: %v", who, !want)
		}
	}
	viewer, err := a.stored.Users.Named(t.Context(), "the-viewer")
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"hers": member.ID, "his": viewer.ID, "gone": viewer.ID} {
		if _, err := a.crew.roster.Set(t.Context(), roster.Author{Name: "x", ID: id}, name, []byte(`{"prompt_text":"a secret"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.crew.roster.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		who, method, path, body string
		status                  int
		secret                  bool
	}{
		{"member admin", "GET", "agents/hers", "", 200, true},
		{"member admin", "PATCH", "agents/hers", `{"voice":"slt"}`, 200, true},
		{"member admin", "DELETE", "agents/hers", "", 200, false},
		{"member admin", "POST", "agents/hers/restore", `{"rev":1}`, 200, true},
		{"member admin", "PUT", "devices/" + kitchen + "/agent", `{"agent":"hers"}`, 200, false},
		{"member admin", "GET", "agents/his", "", 404, false},
		{"member admin", "GET", "agents/his/revisions", "", 404, false},
		{"member admin", "GET", "agents/gone/revisions", "", 404, false},
		{"member admin", "PATCH", "agents/his", `{"voice":"slt"}`, 403, false},
		{"member admin", "POST", "agents/gone/restore", `{"rev":1}`, 403, false},
		{"member admin", "PUT", "devices/" + kitchen + "/agent", `{"agent":"his"}`, 404, false},
		{"owner admin", "GET", "agents/his", "", 200, true},
		{"owner admin", "GET", "agents/gone/revisions", "", 200, true},
		{"admin-token", "PUT", "devices/" + kitchen + "/agent", `{"agent":"his"}`, 200, false},
	} {
		status, answer := askAPI(h, w.method, "/api/v1/"+w.path, tokens[w.who], w.body)
		if status != w.status || strings.Contains(answer, "a secret") != w.secret {
			t.Errorf("%s asks %s %s: %d %s", w.who, w.method, w.path, status, answer)
		}
	}
	if _, answer := askAPI(h, http.MethodGet, roster.Path, tokens["member read"], ""); strings.Contains(answer, "his") || !strings.Contains(answer, "hers") || !strings.Contains(answer, "storyteller") {
		t.Errorf("a member is shown %s", answer)
	}
	acts, err := a.stored.Audit.List(t.Context(), store.Page{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, act := range acts {
		if _, err := netip.ParseAddrPort(act.Remote); err == nil {
			t.Errorf("%s of %s comes from %s", act.Act, act.Who, act.Remote)
		}
		found[fmt.Sprint(act.Who, " ", act.Act, " ", act.Object, " ", act.OK)] = true
	}
	for _, want := range []string{"admin-token agent.set pirate true", "the-owner agent.set pirate true", "the-member device.agent " + kitchen + " true", "the-viewer refused PUT /api/v1/agents/{name} false"} {
		if !found[want] {
			t.Errorf("the audit does not hold %q of %v", want, found)
		}
	}
}

// What is wrong is told in one sentence, and nothing has changed; not by a file of the settings either, which wins.
func TestAgentMistakes(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "agents:\n  fixed: {voice: slt}\ndevices:\n  \"24:6f:28:aa:10:03\": {agent: fixed}\n")
	defer a.Close()
	token := strings.Repeat("ab", 32)
	a.web.guard.SetAdmin(token)
	if status, answer := askAPI(h, http.MethodPut, "/api/v1/agents/pirate", token, `{"voice":"rms"}`); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	for _, w := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"PATCH", "agents/pirate", `{"promt":"teacher"}`, 400, "unknown key agents.pirate.promt (did you mean agents.pirate.prompt?)"},
		{"PATCH", "agents/pirate", `{"llm":["deepsek"]}`, 400, "agents.pirate.llm: there is no providers.deepsek (did you mean deepseek?)"},
		{"PATCH", "agents/pirate", `{"llm":["deepseek","rules"]}`, 400, "agents.pirate.llm: deepseek cannot be used: "},
		{"PATCH", "agents/pirate", `{"voice":"sltt"}`, 400, "agents.pirate.voice: there is no voice sltt"},
		{"PATCH", "agents/pirate", `{"tools":{"deny":["play_musik"]}}`, 400, "agents.pirate.tools.deny: there is no tool play_musik (did you mean play_music?)"},
		{"PATCH", "agents/pirate", `nonsense`, 400, "JSON"},
		{"PATCH", "agents/fixed", `{}`, 409, "the agent fixed is set at "},
		{"PUT", "agents/original", `{}`, 400, "cannot be the name of an agent"},
		{"DELETE", "agents/pirat", ``, 404, "there is no agent pirat (did you mean pirate?)"},
		{"GET", "agents/pirat", ``, 404, "there is no agent pirat (did you mean pirate?)"},
		{"POST", "agents/pirate/restore", `{"rev":9}`, 404, "pirate has no revision 9, but 1 to 1"},
		{"PUT", "devices/24:6f:28:aa:10:02/agent", `{"agent":"pirat"}`, 404, "there is no agent pirat (did you mean pirate?)"},
		{"PUT", "devices/24-6F-28-AA-10-02/agent", `{"agent":"pirate"}`, 404, "no device is known as 24:6f:28:aa:10:02"},
		{"PUT", "devices/" + attic + "/agent", `{"agent":"pirate"}`, 409, "is set at "},
	} {
		status, answer := askAPI(h, w.method, "/api/v1/"+w.path, token, w.body)
		var refusal struct{ Message string }
		if err := json.Unmarshal([]byte(answer), &refusal); err != nil || status != w.status || !strings.Contains(refusal.Message, w.says) || strings.Contains(refusal.Message, "\n") {
			t.Errorf("%s %s %s: %d %s, want %d %q", w.method, w.path, w.body, status, answer, w.status, w.says)
		}
	}
	if all := a.crew.roster.List(); len(all) != 1 || all[0].Rev != 1 || all[0].Doc != `{"voice":"rms"}` || len(a.crew.roster.Devices()) != 0 {
		t.Errorf("something has changed: %+v", all)
	}
}

// Agents and those that devices were given are there after a restart. One whose settings hold no more is left out and
// says why; one that a file sets too is hidden by it. The devices of both are served.
func TestAgentsAfterRestart(t *testing.T) {
	data := t.TempDir()
	a, _ := builtApp(t, data, "providers: {cloud: {type: openai, base_url: 'http://127.0.0.1:1/v1', model: m}}")
	for _, name := range []string{"pirate", "broken", "twin"} {
		if _, err := a.crew.roster.Set(t.Context(), roster.Author{Name: "anna"}, name, fmt.Appendf(nil, `{"prompt":"storyteller","llm":[%q]}`, map[bool]string{true: "cloud", false: "rules"}[name == "broken"])); err != nil {
			t.Fatal(err)
		}
	}
	record := identity.Record{ID: kitchen, Address: kitchen, State: identity.Paired}
	if err := a.records().Commit(t.Context(), identity.Change{Save: []identity.Record{record}}); err != nil {
		t.Fatal(err)
	}
	if err := a.crew.roster.Assign(t.Context(), kitchen, "pirate"); err != nil {
		t.Fatal(err)
	}
	a.Close()
	b, h := builtApp(t, data, "agents: {twin: {prompt: teacher}}")
	defer b.Close()
	if p, ok := b.cast.Of(kitchen, ""); !ok || p.Name != "pirate" || p.Prompt != "storyteller" || p.LLM == nil {
		t.Errorf("%+v %v", p.Persona, ok)
	}
	if _, ok := b.cast.Of(kitchen, "broken"); ok {
		t.Error("an agent without its model is used")
	}
	if p, _ := b.cast.Of(kitchen, "twin"); p.Prompt != "teacher" {
		t.Errorf("the twin of the file has the prompt %s", p.Prompt)
	}
	b.web.guard.SetAdmin("0123456789abcdef")
	status, answer := askAPI(h, http.MethodGet, roster.Path, "0123456789abcdef", "")
	var list roster.AgentList
	if err := json.Unmarshal([]byte(answer), &list); err != nil || status != http.StatusOK {
		t.Fatal(status, answer)
	}
	told := map[string]string{}
	for _, one := range list.Agents {
		told[one.Name] = fmt.Sprint(one.From, " ", one.Rev, " ", one.Shadowed, " ", one.Devices, " ", strings.Contains(one.Trouble, "there is no providers.cloud"), " ", string(one.Settings))
	}
	for name, want := range map[string]string{
		"pirate": `store 1 false [` + kitchen + `] false {"llm":["rules"],"prompt":"storyteller"}`, "broken": `store 1 false [] true {"llm":["cloud"],"prompt":"storyteller"}`,
		"twin": `settings 0 true [] false {"prompt":"teacher"}`, "default": "prompt 0 false [] false {}", "storyteller": "prompt 0 false [] false {}",
	} {
		if told[name] != want {
			t.Errorf("%s: %s, want %s", name, told[name], want)
		}
	}
}

// Without a store agents can be changed all the same, until the program ends.
func TestAgentsInMemory(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "store: {driver: none}")
	defer a.Close()
	a.web.guard.SetAdmin("0123456789abcdef")
	for _, w := range []struct {
		method, path, body, token string
		status                    int
	}{
		{"PUT", "agents/pirate", `{"voice":"rms"}`, "0123456789abcdef", 200},
		{"PUT", "agents/pirate", `{"voice":"slt"}`, "0123456789abcdeg", 401},
		{"PUT", "devices/" + kitchen + "/agent", `{"agent":"pirate"}`, "0123456789abcdef", 200},
	} {
		if status, answer := askAPI(h, w.method, "/api/v1/"+w.path, w.token, w.body); status != w.status {
			t.Errorf("%s %s: %d %s", w.method, w.path, status, answer)
		}
	}
	if p, _ := a.cast.Of(kitchen, ""); p.Name != "pirate" || p.Voice != "rms" || a.crew.agentOf(attic) != "default" {
		t.Errorf("%+v", p.Persona)
	}
}

// The prompt that agent.prompt names cannot be deleted where only an agent has that name.
func TestFirstAgentStays(t *testing.T) {
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	a := without(t, t.TempDir(), func(c *config.Config) { c.Agent.Prompt = "pirate"; c.Store.Driver = "none" })
	if a.crew, err = openCrew(t.Context(), a.cfg, a.stored, texts, a.log); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.crew.Stage(t.Context(), map[string]string{}, "pirate"); err == nil || !strings.Contains(err.Error(), "agent.prompt names pirate") {
		t.Error(err)
	}
}

// Phrases are spoken ahead in the voices of the agents that devices have, and anew when those change.
func TestPhrasesAheadOfAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts, err := prompts.Load("")
		if err != nil {
			t.Fatal(err)
		}
		voice := &providertest.TTS{Label: "own"}
		a := without(t, t.TempDir(), func(c *config.Config) { c.Store.Driver = "none"; c.Server.Language = "en" })
		if a.crew, err = openCrew(t.Context(), a.cfg, a.stored, texts, a.log); err != nil {
			t.Fatal(err)
		}
		all := castOf(a.cfg, texts, nil)
		all.byName["anna"] = persona{}
		anna := all.byName["anna"]
		anna.TTS, anna.Voice = voice, "alto"
		all.byName["anna"] = anna
		a.crew.cast = newCast(all)
		a.crew.cast.assigned = a.crew.roster.Assigned
		warmed := 0
		a.crew.ahead = func(context.Context) error { warmed += len(a.crew.inUse()); return nil }
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); a.crew.rewarm(ctx) }()
		if list := a.crew.inUse(); len(list) != 0 {
			t.Error("a voice that no device has is spoken ahead")
		}
		a.crew.own = local.New(local.Options{})
		if err := a.crew.roster.Assign(ctx, kitchen, "default"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if warmed != 0 {
			t.Error("the voice of all is spoken ahead twice")
		}
		a.crew.now.Agents = map[string]config.Persona{"anna": {}}
		if err := a.crew.roster.Assign(ctx, kitchen, "anna"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if warmed != 1 {
			t.Errorf("%d voices are spoken ahead", warmed)
		}
		stop()
		<-over
	})
}
