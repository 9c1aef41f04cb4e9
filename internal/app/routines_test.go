package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/routines"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/routine"
	"xiaozhi/internal/songs"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/rules"
)

// withRoutines has a harness keep routines; brain: the rules answer.
func withRoutines(s script, brain bool) script {
	s.replace = func(h *harness, o *agent.Options) {
		ctx, a := h.t.Context(), h.app
		if brain {
			o.LLM = rules.New(rules.Options{Prompts: o.Prompts.Phrase, Zone: time.UTC})
		}
		var err error
		if a.outside.letters, err = officeOf(ctx, a.stored, a.life, mail.Options{Changed: letterChanged(a), Log: a.log}); err != nil {
			h.t.Fatal(err)
		}
		if err := openQuiet(ctx, a); err != nil {
			h.t.Fatal(err)
		}
		a.outside.sender = senderOf(a, songs.Library{})
		a.outside.routines = routinesOf(ctx, a)
		o.Features = append(features(a.reminders(ctx, a.stored), a.outside.letters, songs.Library{}, nil, quietSwitch{a}), routines.Feature{Book: a.outside.routines})
	}
	return s
}

// answers returns what a device says next; words, unless empty, are said to it.
func answers(ctx context.Context, t *testing.T, d *devicetest.Device, words string) string {
	t.Helper()
	if words != "" {
		if err := d.Detect(words); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, err := d.WaitReply(ctx)
	if err != nil {
		return err.Error()
	}
	return r.Text()
}

// TestRoutinesByVoice: without a language model, in both languages, a routine is set up, done at its time after the program was
// killed, by a device that slept when it came due, listed, and ended.
func TestRoutinesByVoice(t *testing.T) {
	data, left := t.TempDir(), t.TempDir()
	s := withRoutines(script{data: data}, true)
	says := func(ctx context.Context, t *testing.T, d *devicetest.Device, words, want string) {
		t.Helper()
		if got := answers(ctx, t, d, words); !strings.Contains(got, want) {
			t.Errorf("to %q it says %q, want %q", words, got, want)
		}
	}
	there := "24:6f:28:aa:10:09"
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		d, e := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true}), h.speaker(ctx, t, devicetest.Options{DeviceID: there, NoMCP: true})
		time.Sleep(time.Second)
		says(ctx, t, d, "what routines do I have", "There are no routines")
		says(ctx, t, d, "every 10 minutes tell me what time it is", "it is set up: every 10 minutes, tell me what time it is. I cannot wake this device")
		says(ctx, t, e, "每15分钟告诉我几点了", "每15分钟，告诉我几点了。 我没法唤醒这台设备")
		says(ctx, t, e, "我有哪些例行任务", "例行任务有这些： 每15分钟，告诉我几点了。")
		killed(t, data, left)
	})
	s.data = left
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		time.Sleep(11 * time.Minute)
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		says(ctx, t, d, "", "It is 12:11")
		says(ctx, t, d, "", "context deadline exceeded") // it was done once
		says(ctx, t, d, "cancel the weather routine", "I have changed nothing, because I do not know which one you mean. There are these: every 10 minutes, tell me what time it is.")
		says(ctx, t, d, "cancel the routine", "this will not be done any more: tell me what time it is.")
		time.Sleep(5 * time.Minute)
		e := h.speaker(ctx, t, devicetest.Options{DeviceID: there, NoMCP: true})
		says(ctx, t, e, "", "现在是凌晨0点16分")
		says(ctx, t, e, "取消几点了的例行任务", "好的，以后不做了： 告诉我几点了。")
		if all := h.app.outside.routines.List(); len(all) != 0 {
			t.Errorf("left are %+v", all)
		}
	})
}

// TestRoutinesOfFiles: a file has a model find something out with a tool, a text said when a tool of the device has run, and a tool
// run by a hook; the lamp that a routine switches begins it only so often.
func TestRoutinesOfFiles(t *testing.T) {
	data := t.TempDir()
	const file = `
morning:
  to: ` + kitchen + `
  when: every 10 minutes
  prompt: How warm is it?
lit:
  to: here
  on: {tool: self.lamp}
  say: "The lamp says {event}"
door:
  to: all
  on: {hook: true, token: 0123456789abcdef}
  tool: {name: self.lamp, arguments: {to: "{event}"}, say: true}
gate:
  to: all
  on: {server: home, resource: "home://gate"}
  say: "The gate is {event}."
`
	if err := os.MkdirAll(filepath.Join(data, "routines"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "routines", "home.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	lamp := devicetest.Tool{
		Name: "self.lamp", Description: "the lamp", Properties: []devicetest.Property{{Name: "to", Type: "string"}},
		Call: func(_ context.Context, c devicetest.Call) (devicetest.Result, error) {
			to, _ := c.Arguments["to"].(string)
			return devicetest.Result{Text: "it is " + to}, nil
		},
	}
	call := providertest.Call(providers.ToolCall{ID: "c1", Name: "get_current_time", Arguments: `{}`})
	s := withRoutines(script{data: data, llm: []providertest.Step{call, providertest.Say("It is midnight, and cold.")}}, false)
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		time.Sleep(9 * time.Minute)
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, Tools: []devicetest.Tool{lamp}})
		time.Sleep(time.Second)
		if err := h.app.outside.routines.Hook("door", "0123456789abcdef", "blue"); err != nil {
			t.Fatal(err)
		}
		said := answers(ctx, t, d, "") + "; " + answers(ctx, t, d, "")
		if !strings.Contains(said, "The lamp says it is blue") || strings.Count(said, "it is blue") != 2 {
			t.Errorf("it says %q", said)
		}
		resources := watchOf(h.app)
		if got := resources.Wanted("home"); len(got) != 1 || got[0] != "home://gate" || resources.Wanted("shop") != nil {
			t.Errorf("it waits for %v", got)
		}
		resources.Changed("home", "home://gate", "open")
		if got := answers(ctx, t, d, ""); got != "The gate is open." {
			t.Errorf("it says %q", got)
		}
		time.Sleep(50 * time.Second)
		if got := answers(ctx, t, d, ""); got != "It is midnight, and cold." {
			t.Errorf("it says %q", got)
		}
		time.Sleep(time.Second)
		if note := h.llm.Asked(); len(note) != 2 || !strings.Contains(note[0].Request.Messages[len(note[0].Request.Messages)-1].Content, "How warm is it?") {
			t.Errorf("the model was asked %+v", note)
		}
		for id, want := range map[string]routine.Outcome{"morning": routine.Done, "lit": routine.Done, "door": routine.Done, "gate": routine.Done} {
			if r, err := h.app.outside.routines.Find(id); err != nil || r.Outcome != want {
				t.Errorf("%s: %+v, %v", id, r.State, err)
			}
		}
		l, err := h.app.outside.letters.Last(ctx, kitchen, 9)
		if err != nil || len(l) != 4 || l[0].Source != "routine" || l[0].Fate != mail.Heard {
			t.Errorf("%+v, %v", l, err)
		}
	})
}
