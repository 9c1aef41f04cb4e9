package app

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	memorypages "xiaozhi/console/memories"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/servicetest"
	mem0test "xiaozhi/internal/servicetest/mem0"
	memobasetest "xiaozhi/internal/servicetest/memobase"
	"xiaozhi/internal/testall"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/memory/mem0"
	"xiaozhi/memory/memobase"
	"xiaozhi/providers/rules"
	"xiaozhi/store"
)

// brain is a service that keeps memories in a test.
type brain interface {
	URL() string
	Direct() *http.Client
	Behave(servicetest.Trouble)
	All() []servicetest.Item
}

// withRules runs a server without a model, whose memories are kept by an engine.
func withRules(t *testing.T, service hosted.Service, f func(ctx context.Context, t *testing.T, h *harness)) {
	t.Helper()
	s := script{data: t.TempDir()}
	s.replace = func(h *harness, o *agent.Options) {
		o.LLM = rules.New(rules.Options{Prompts: o.Prompts.Phrase, Name: "Xiaozhi"})
		known := memoryBook(h.t.Context(), h.app, service)
		h.app.outside.known = known
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, known, quietSwitch{h.app})
	}
	inMemory(t, s, f)
}

// hears holds a speaker to what it says to words.
func hears(ctx context.Context, t *testing.T, d *devicetest.Device, steps ...string) {
	t.Helper()
	for i := 0; i+1 < len(steps); i += 2 {
		if got := says(ctx, t, d, steps[i]); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(steps[i+1], " ", "") {
			t.Errorf("%q: %q, want %q", steps[i], got, steps[i+1])
		}
	}
}

// TestMemoryByVoiceOfEachEngine: what is to be remembered, told and forgotten is confirmed in its words in both languages, whoever keeps it, and is
// kept and gone there when that is said.
func TestMemoryByVoiceOfEachEngine(t *testing.T) {
	for name, fake := range map[string]func(testing.TB) brain{
		config.OwnMemory: nil, config.Mem0: func(t testing.TB) brain { return mem0test.Own(t) }, config.Memobase: func(t testing.TB) brain { return memobasetest.New(t) },
	} {
		t.Run(name, func(t *testing.T) {
			if name != config.Mem0 {
				testall.Only(t)
			}
			var kept brain
			var service hosted.Service
			if fake != nil {
				kept = fake(t)
				account := hosted.Account{Name: name, BaseURL: kept.URL(), Key: servicetest.Key, Client: kept.Direct()}
				service, _ = mem0.New(mem0.Options{Account: account, Own: true})
				if name == config.Memobase {
					service, _ = memobase.New(memobase.Options{Account: account})
				}
			}
			withRules(t, service, func(ctx context.Context, t *testing.T, h *harness) {
				d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
				time.Sleep(time.Second) // the device is written down
				has := func(words ...string) {
					t.Helper()
					if kept == nil {
						return
					}
					var all []string
					for _, i := range kept.All() {
						all = append(all, i.Text)
					}
					if !slices.Equal(all, words) {
						t.Errorf("the service keeps %q, want %q", all, words)
					}
				}
				hears(
					ctx, t, d,
					"what do you know about me", "I remember nothing about you yet.",
					"remember that the key is under the mat", "OK, I will remember: the key is under the mat.",
					"what do you know about me", "I remember this: the key is under the mat.",
				)
				has("the key is under the mat")
				hears(ctx, t, d, "forget that", "OK, I have forgotten this: the key is under the mat.")
				has()
				hears(
					ctx, t, d,
					"记住钥匙在垫子下面", "好的，我记住了：钥匙在垫子下面。",
					"记住我对花生过敏", "好的，我记住了：你对花生过敏。",
					"忘掉关于钥匙的事", "好的，我已经忘掉了：钥匙在垫子下面。",
				)
				has("用户对花生过敏。")
				hears(
					ctx, t, d,
					"你知道我哪些事", "我记得这些：你对花生过敏。",
					"忘掉一切", "确定要清空全部记忆吗？请说确定或者取消。",
					"确定", "好的，我已经忘掉了全部记忆，一共1条。",
					"你知道我哪些事", "我还没有记住关于你的事。",
				)
				has()
				if kept == nil {
					return
				}
				hears(ctx, t, d, "remember that the bin is green", "OK, I will remember: the bin is green.")
				kept.Behave(servicetest.Trouble{Fails: true})
				hears(
					ctx, t, d,
					"forget that", "OK, I will not use it any more. The memory service does not answer now; it will delete it as soon as it does.",
					"what do you know about me", "I remember nothing about you yet.",
					"remember that the bin is red", "That did not work: it could not be stored; nothing was changed.",
				)
				kept.Behave(servicetest.Trouble{})
				time.Sleep(3 * time.Minute)
				has()
			})
		})
	}
}

// TestMemoryRoutes: whose a device is sees what is remembered there and deletes it, one by one or all; nobody else does.
func TestMemoryRoutes(t *testing.T) {
	fake := mem0test.Own(t)
	for _, settings := range []string{"{}", "memory: {engine: mem0, proxy: none, api_key: " + servicetest.Key + ", base_url: '" + fake.URL() + "'}"} {
		a, h := builtApp(t, t.TempDir(), settings)
		defer a.Close()
		by := account.Actor{Name: "test", Via: account.ViaCommand}
		tokens := map[string]string{}
		for _, name := range []string{"ann", "bob"} {
			if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: account.Member, Password: "correct horse battery"}); err != nil {
				t.Fatal(err)
			}
			for _, scope := range []account.Scope{account.Admin, account.Read} {
				token, err := a.accounts.NewToken(t.Context(), by, name, account.NewToken{Label: "x", Scopes: []account.Scope{scope}})
				if err != nil {
					t.Fatal(err)
				}
				tokens[name+" "+string(scope)] = token
			}
		}
		ann, err := a.stored.Users.Named(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		id := store.Identity{ID: kitchen, Address: kitchen, State: store.DevicePaired}
		if err := a.stored.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{id}}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.stored.Devices.Edit(t.Context(), kitchen, func(d *store.Device) error { d.OwnerID = ann.ID; return nil }); err != nil {
			t.Fatal(err)
		}
		for agent, words := range map[string]string{"default": "The key is under the mat.", "teacher": "The user learns Greek."} {
			for _, more := range []string{"", " So it is."} {
				f := memory.Fact{Owner: memory.Owner{Device: kitchen, Agent: agent}, Text: words + more}
				if _, _, err := a.outside.known.Remember(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
		}
		path := "/api/v1/devices/" + kitchen + "/memories"
		list := func(query string) (all memorypages.List) {
			t.Helper()
			status, answer := askAPI(h, "GET", path+query, tokens["ann read"], "")
			if err := json.Unmarshal([]byte(answer), &all); status != 200 || err != nil {
				t.Fatalf("%d %s", status, answer)
			}
			return all
		}
		all := list("").Memories
		if len(all) != 4 || all[0].Agent != "default" || all[3].Agent != "teacher" || !all[0].Told || all[0].At == nil {
			t.Fatalf("%+v", all)
		}
		if some := list("?agent=teacher").Memories; len(some) != 2 || some[0].Agent != "teacher" {
			t.Errorf("%+v", some)
		}
		expect := func(status int, who, method, path, want string) {
			t.Helper()
			if got, answer := askAPI(h, method, path, tokens[who], ""); got != status || !strings.Contains(answer, want) {
				t.Errorf("%s: %s %s: %d %s", who, method, path, got, answer)
			}
		}
		one := path + "/" + all[0].ID
		expect(403, "bob read", "GET", path, "")
		expect(403, "bob admin", "DELETE", path, "")
		expect(403, "bob admin", "DELETE", one, "")
		expect(403, "ann read", "DELETE", one, "")
		expect(200, "ann admin", "DELETE", one, `{"forgotten":1}`)
		expect(404, "ann admin", "DELETE", one, "memories/unknown")
		expect(404, "ann admin", "DELETE", path+"/'%20OR%201=1", "这台设备没有这条记忆")
		if all := list("").Memories; len(all) != 3 {
			t.Errorf("%+v", all)
		}
		expect(200, "ann admin", "DELETE", path+"?agent=default", `{"forgotten":1}`)
		if a.cfg.Memory.Engine != config.OwnMemory {
			fake.Behave(servicetest.Trouble{Fails: true})
			expect(202, "ann admin", "DELETE", path+"/"+list("").Memories[0].ID, `{"forgotten":1,"later":true}`)
			fake.Behave(servicetest.Trouble{})
		}
		expect(200, "ann admin", "DELETE", path, `{"forgotten":`)
		if all := list("").Memories; len(all) != 0 {
			t.Errorf("%+v", all)
		}
		if left := fake.All(); len(left) != 0 {
			t.Errorf("the service keeps %+v", left)
		}
		expect(403, "ann admin", "GET", "/api/v1/devices/24:6f:28:aa:10:99/memories", "") // of nobody
	}
}
