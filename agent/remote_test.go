package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// outside holds a conversation in fake time for somebody outside to act on.
func outside(t *testing.T, llm *scriptLLM, f func(t *testing.T, v *visit)) {
	t.Helper()
	outsideWith(t, llm, router.Options{}, nil, f)
}

// outsideWith is outside with tools of the device.
func outsideWith(t *testing.T, llm *scriptLLM, limits router.Options, tools []string, f func(t *testing.T, v *visit)) {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		v := connect(t, Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, LLM: llm, TTS: &toneTTS{rate: 16000}, Prompts: set,
			Devices: NewDevices(), Zone: time.UTC, MaxDaily: 1,
		}, limits, newScriptSource("device", tools))
		f(t, v)
		v.bye()
		detectors.Wait()
	})
}

func (v *visit) listens(t *testing.T, mode wire.Mode) {
	t.Helper()
	if err := v.c.Post(wire.ListenStart{Mode: mode}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func TestSay(t *testing.T) {
	llm := &scriptLLM{lines: []string{"text A reply that takes quite a while.", "end"}}
	outside(t, llm, func(t *testing.T, v *visit) {
		said, err := v.d.Say(t.Context(), " Dinner is ready. ", false)
		if err != nil || said != (remote.Said{Heard: "Dinner is ready.", Whole: true}) {
			t.Errorf("said %+v, %v", said, err)
		}
		if !strings.Contains(v.box.String(), "sentence Dinner is ready.") {
			t.Errorf("the device got\n%s", v.box)
		}
		if _, err := v.d.Say(t.Context(), "  ", false); err == nil || !strings.Contains(err.Error(), "0 characters") {
			t.Errorf("nothing to say: %v", err)
		}
		if _, err := v.d.Say(t.Context(), strings.Repeat("x", 4001), true); err == nil {
			t.Error("no limit")
		}

		v.types(t, "tell me something")
		time.Sleep(time.Second)
		if said, err = v.d.Say(t.Context(), "At once.", true); err != nil || !said.Whole {
			t.Errorf("now: %+v, %v", said, err)
		}
		got := v.box.String()
		if cut, now := strings.Index(got, "silent frame, tts stop"), strings.Index(got, "sentence At once."); cut < 0 || now < cut {
			t.Errorf("the reply was not cut for it:\n%s", got)
		}
		synctest.Wait()
		if dialogue := v.c.dev.history.Snapshot(); len(dialogue) != 4 || dialogue[3].Content != "At once." || dialogue[3].Role != providers.RoleAssistant {
			t.Errorf("dialogue: %+v", dialogue)
		}
	})
}

// What is cut says how much of it was heard; what nobody waits for any more is not said.
func TestSayCut(t *testing.T) {
	outside(t, &scriptLLM{}, func(t *testing.T, v *visit) {
		time.AfterFunc(3*time.Second, func() {
			if err := v.c.Post(wire.Abort{}); err != nil {
				t.Error(err)
			}
		})
		said, err := v.d.Say(t.Context(), "A long announcement that somebody stops with the button.", false)
		if err != nil || said.Whole || !strings.HasPrefix(said.Heard, "A long an") || len(said.Heard) > 30 {
			t.Errorf("said %+v, %v", said, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := v.d.Say(ctx, "Never.", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody waits: %v", err)
		}
		time.Sleep(10 * time.Second)
		if strings.Contains(v.box.String(), "Never") {
			t.Errorf("it is said all the same:\n%s", v.box)
		}
	})
}

func TestSayQueueFull(t *testing.T) {
	outside(t, &scriptLLM{}, func(t *testing.T, v *visit) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var refused int
		for range maxWaiting + 2 {
			wg.Go(func() {
				if _, err := v.d.Say(t.Context(), "One of many.", false); errors.Is(err, feature.ErrQueueFull) {
					mu.Lock()
					refused++
					mu.Unlock()
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if refused != 2 || strings.Count(v.box.String(), "sentence One of many.") != maxWaiting {
			t.Errorf("%d refused:\n%s", refused, v.box)
		}
	})
}

// The user's next words belong to whoever asked, and to nobody else.
func TestAsk(t *testing.T) {
	llm := &scriptLLM{lines: []string{"text Hello.", "end"}}
	outside(t, llm, func(t *testing.T, v *visit) {
		time.AfterFunc(4*time.Second, func() { v.types(t, "at seven please") })
		answer, err := v.d.Ask(t.Context(), "When shall I wake you?")
		if err != nil || answer != "at seven please" {
			t.Errorf("answer %q, %v", answer, err)
		}
		time.Sleep(2 * time.Second)
		if n := len(llm.requests); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		v.types(t, "hi")
		time.Sleep(2 * time.Second)
		if len(llm.requests) != 1 {
			t.Error("the words after the answer are nobody's")
		}
		if last := llm.requests[0].Messages; last[len(last)-2].Content != "at seven please" {
			t.Errorf("the model does not know of the answer: %+v", last)
		}
	})
}

func TestAskInVain(t *testing.T) {
	llm := &scriptLLM{lines: []string{"text Hello.", "end"}}
	outside(t, llm, func(t *testing.T, v *visit) {
		if _, err := v.d.Ask(t.Context(), "Are you there?"); !errors.Is(err, remote.ErrNoAnswer) {
			t.Errorf("no answer: %v", err)
		}
		v.types(t, "hi")
		time.Sleep(2 * time.Second)
		if len(llm.requests) != 1 {
			t.Error("what is said too late is nobody's")
		}
		time.AfterFunc(time.Second+200*time.Millisecond, func() {
			if err := v.c.Post(wire.Abort{}); err != nil {
				t.Error(err)
			}
		})
		time.AfterFunc(10*time.Second, v.leave)
		if _, err := v.d.Ask(t.Context(), "And now?"); err == nil {
			t.Error("the conversation ended, and Ask did not")
		}
	})
}

func TestListenAndStop(t *testing.T) {
	llm := &scriptLLM{lines: []string{"text A reply that takes quite a while.", "end"}}
	outside(t, llm, func(t *testing.T, v *visit) {
		if err := v.d.Listen(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := lines(v.box); !strings.Contains(got, "tts start") || !strings.Contains(got, "tts stop") {
			t.Errorf("no empty reply: %q", got)
		}
		if stopped, err := v.d.Stop(t.Context()); stopped || err != nil {
			t.Errorf("nothing goes on: %v, %v", stopped, err)
		}
		v.types(t, "tell me something")
		time.Sleep(time.Second)
		if stopped, err := v.d.Stop(t.Context()); !stopped || err != nil {
			t.Errorf("stop: %v, %v", stopped, err)
		}
		synctest.Wait()
		if got := lines(v.box); !strings.HasSuffix(got, "frames; silent frame, tts stop; final A reply…") {
			t.Errorf("the reply goes on: %q", got)
		}
		v.listens(t, wire.Manual)
		if err := v.d.Listen(t.Context()); !errors.Is(err, remote.ErrManual) {
			t.Errorf("manual: %v", err)
		}
		v.bye()
		if err := v.d.Listen(t.Context()); !errors.Is(err, feature.ErrOver) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestStopWhileDraining: the reply that a server which stops waits for can be ended
// from outside; nothing new is begun.
func TestStopWhileDraining(t *testing.T) {
	outside(t, &scriptLLM{lines: []string{"text A reply that takes quite a while.", "end"}}, func(t *testing.T, v *visit) {
		v.types(t, "talk")
		time.Sleep(time.Second)
		if err := v.c.Post(wire.Drain{Cause: errors.New("the end")}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if said, err := v.d.Say(t.Context(), "Dinner is ready.", true); !errors.Is(err, feature.ErrOver) {
			t.Errorf("said %+v, %v", said, err)
		}
		if stopped, err := v.d.Stop(t.Context()); !stopped || err != nil {
			t.Errorf("stopped %v, %v", stopped, err)
		}
		synctest.Wait()
		if got := v.box.String(); !strings.Contains(got, "silent frame, tts stop") || v.box.hungUp == nil || strings.Contains(got, "Dinner") {
			t.Errorf("the device got\n%s", got)
		}
		if _, err := v.d.Stop(t.Context()); !errors.Is(err, feature.ErrOver) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A text that is to be said at once, and whose place is taken before it has
// begun, is not waited for.
func TestSayReplaced(t *testing.T) {
	llm := &scriptLLM{lines: []string{"text A reply that takes quite a while.", "end"}}
	for what, replace := range map[string]func(t *testing.T, v *visit){
		"the button": func(t *testing.T, v *visit) {
			t.Helper()
			if err := v.c.Post(wire.Abort{}); err != nil {
				t.Error(err)
			}
		},
		"another text": func(t *testing.T, v *visit) {
			t.Helper()
			if said, err := v.d.Say(t.Context(), "Second.", true); err != nil { // one of both is said
				t.Errorf("the one that replaces it: %+v, %v", said, err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			llm.lines = []string{"text A reply that takes quite a while.", "end"}
			outside(t, llm, func(t *testing.T, v *visit) {
				v.types(t, "tell me something")
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					if said, err := v.d.Say(ctx, "First.", true); err != nil {
						t.Errorf("said %+v, %v", said, err)
					}
				})
				wg.Go(func() { replace(t, v) })
				wg.Wait()
			})
		})
	}
}

// What waited to be told and is not wanted any more does not end the
// conversation before its time.
func TestSayGivenUpKeepsTheChannel(t *testing.T) {
	outside(t, &scriptLLM{}, func(t *testing.T, v *visit) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		time.AfterFunc(200*time.Millisecond, func() {
			if err := v.c.Post(wire.ListenStart{Mode: wire.Auto}); err != nil {
				t.Error(err)
			}
		})
		if _, err := v.d.Say(ctx, "Never.", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody waits: %v", err)
		}
		time.Sleep(95 * time.Second)
		if got := v.box.String(); strings.Contains(got, "hang up") {
			t.Errorf("the device got\n%s", got)
		}
		time.Sleep(10 * time.Second)
		if got := v.box.String(); !strings.Contains(got, "100200 hang up: idle") {
			t.Errorf("the device got\n%s", got)
		}
	})
}

// A call from outside has its true result, however often it is made, and says
// nothing on the device.
func TestCallFromOutside(t *testing.T) {
	tools := []string{"self.lamp.turn_on control 1s done", "self.lamp.blow control 0s !error the fuse", "sing query 0s !handler " + mcp.HandlerChangeRole}
	outsideWith(t, &scriptLLM{}, router.Options{}, tools, func(t *testing.T, v *visit) {
		before := v.box.String()
		for _, tc := range []struct{ name, arguments, language, want, invalid string }{
			{"self_lamp_turn_on", `{"volume":1}`, "en", "done", ""},
			{"self_lamp_turn_on", `{"volume":1}`, "en", "done", ""},
			{"self_lamp_turn_on", `{"volume":"x"}`, "zh", "参数不对", "volume"},
			{"self_lamp_blow", "", "en", "the fuse", ""},
			{"self_oven", "", "en", "no tool named self_oven", ""},
		} {
			r, invalid := v.d.Call(t.Context(), mcp.Call{ID: "c", Name: tc.name, Arguments: tc.arguments, Language: tc.language})
			if got := mcp.ResultText(r); !strings.Contains(got, tc.want) || (tc.invalid == "") != (invalid == "") || !strings.Contains(invalid, tc.invalid) {
				t.Errorf("%s %s: %s, invalid %q", tc.name, tc.arguments, got, invalid)
			}
		}
		var wg sync.WaitGroup
		for range 3 { // callers who do not know of one another
			wg.Go(func() {
				if r, _ := v.d.Call(t.Context(), mcp.Call{ID: "c", Name: "self_lamp_turn_on"}); mcp.ResultText(r) != "done" {
					t.Errorf("at the same time: %+v", r)
				}
			})
		}
		wg.Wait()
		if got := v.box.String(); got != before {
			t.Errorf("the device got %s", strings.TrimPrefix(got, before))
		}
	})
}

// A tool that needs the user's yes needs it from outside too.
func TestCallThatNeedsConsent(t *testing.T) {
	tools := []string{"self.safe.open control 0s opened", "self.safe.burn control 0s !error no fire here"}
	outsideWith(t, &scriptLLM{}, router.Options{Rules: router.Rules{Confirm: []string{"self.safe.*"}}}, tools, func(t *testing.T, v *visit) {
		for _, tc := range []struct{ tool, answer, want, heard string }{
			{"open", "yes please", "opened", "sentence OK."},
			{"open", "no way", "the user has not consented", "sentence OK, I will not do it."},
			{"open", "what is the weather", "the user has not consented", "sentence OK, I will not do it."},
			{"open", "", "there was no answer", "sentence Shall I really open the safe?"},
			{"burn", "yes", "no fire here", "no fire here"},
		} {
			before := v.box.String()
			if tc.answer != "" {
				time.AfterFunc(6*time.Second, func() { v.types(t, tc.answer) })
			}
			r, invalid := v.d.Call(t.Context(), mcp.Call{ID: "c", Name: "self_safe_" + tc.tool, Language: "en"})
			if got := mcp.ResultText(r); !strings.Contains(got, tc.want) || invalid != "" || (r.Action == mcp.ActionTypeError) != (tc.want != "opened") {
				t.Errorf("%q: %+v", tc.answer, r)
			}
			time.Sleep(5 * time.Second)
			heard := strings.TrimPrefix(v.box.String(), before)
			if !strings.Contains(heard, "Shall I really "+tc.tool) || !strings.Contains(heard, tc.heard) {
				t.Errorf("%q: the device got\n%s", tc.answer, heard)
			}
		}
		v.leave()
		synctest.Wait()
		if r, _ := v.d.Call(t.Context(), mcp.Call{ID: "c", Name: "self_safe_open", Language: "zh"}); r.Result != "设备已经断开" {
			t.Errorf("after its end: %+v", r)
		}
	})
}
