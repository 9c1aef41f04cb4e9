package app

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/servicetest"
	mem0test "xiaozhi/internal/servicetest/mem0"
	memobasetest "xiaozhi/internal/servicetest/memobase"
	"xiaozhi/internal/testall"
	"xiaozhi/memory/hosted"
	"xiaozhi/memory/mem0"
	"xiaozhi/memory/memobase"
	"xiaozhi/providers/rules"
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
