package app

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/devicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/rules"
)

// TestQuietMode: while quiet mode is on a message waits, also through a restart, a timer rings and an answer is given; when it ends the
// messages are told once, in their order.
func TestQuietMode(t *testing.T) {
	data := t.TempDir()
	timer := providers.ToolCall{ID: "c1", Name: "set_timer", Arguments: `{"seconds":60}`}
	run := func(f func(ctx context.Context, t *testing.T, h *harness, said func() []string)) {
		s := script{data: data}
		s.replace = func(h *harness, o *agent.Options) {
			h.llm = &providertest.LLM{Answer: func(req providers.LLMRequest) providertest.Step {
				if req.Messages[len(req.Messages)-1].Content == "a timer" {
					return providertest.Call(timer)
				}
				return providertest.Say("Here I am.")
			}}
			o.LLM = h.llm
			if err := openQuiet(h.t.Context(), h.app); err != nil {
				t.Fatal(err)
			}
			o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, h.app.outside.known, quietSwitch{h.app})
		}
		inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
			d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
			time.Sleep(time.Second) // it is written down
			f(ctx, t, h, func() (all []string) {
				ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				for {
					r, err := d.WaitReply(ctx)
					if err != nil {
						return all
					}
					all = append(all, r.Text())
				}
			})
		})
	}
	send := func(ctx context.Context, t *testing.T, h *harness, words string) {
		t.Helper()
		if _, err := h.app.outside.letters.Send(ctx, mail.Letter{Device: kitchen, Text: words, Source: "api"}); err != nil {
			t.Fatal(err)
		}
	}
	run(func(ctx context.Context, t *testing.T, h *harness, said func() []string) {
		if err := h.app.outside.quiet.Begin(ctx, "", time.Time{}, "ann"); err != nil {
			t.Fatal(err)
		}
		send(ctx, t, h, "The first message.")
		send(ctx, t, h, "The second message.")
		if got := said(); len(got) > 0 {
			t.Errorf("it says %q", got)
		}
	})
	run(func(ctx context.Context, t *testing.T, h *harness, said func() []string) {
		if got := said(); len(got) > 0 {
			t.Errorf("after the restart it says %q", got)
		}
		d, err := h.app.outside.devices.Find(kitchen)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Say(ctx, "A program speaks.", false); err == nil {
			t.Error("a program may have something said")
		}
		if _, err := h.app.outside.quiet.End(ctx, ""); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(said(), " ")
		if !slices.Equal(strings.Fields(got), strings.Fields("The first message. The second message.")) {
			t.Errorf("then it says %q", got)
		}
	})
}

// TestQuietByVoice: its user has a speaker be quiet until a time, and ends that; messages wait meanwhile, and other speakers are told theirs.
func TestQuietByVoice(t *testing.T) {
	s := script{data: t.TempDir()}
	s.replace = func(h *harness, o *agent.Options) {
		o.LLM = rules.New(rules.Options{Prompts: o.Prompts.Phrase, Zone: time.UTC})
		if err := openQuiet(h.t.Context(), h.app); err != nil {
			t.Fatal(err)
		}
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, nil, quietSwitch{h.app})
	}
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		here, there := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true}), h.speaker(ctx, t, devicetest.Options{DeviceID: "24:6f:28:aa:10:09", NoMCP: true})
		time.Sleep(time.Second)
		says := func(d *devicetest.Device, words, holds string) {
			t.Helper()
			if words != "" {
				if err := d.Detect(words); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			if r, err := d.WaitReply(ctx); err != nil || !strings.Contains(r.Text(), holds) {
				t.Errorf("to %q it says %q, %v", words, r.Text(), err)
			}
		}
		says(here, "Don't disturb me for two minutes.", "I will be quiet until")
		for _, d := range []string{kitchen, "24:6f:28:aa:10:09"} {
			if _, err := h.app.outside.letters.Send(ctx, mail.Letter{Device: d, Text: "Dinner is ready."}); err != nil {
				t.Fatal(err)
			}
		}
		says(there, "", "Dinner is ready.")
		says(here, "what time is it", "It is")
		time.Sleep(time.Minute)
		if l, err := h.app.outside.letters.Last(ctx, kitchen, 1); err != nil || l[0].Fate != mail.Queued {
			t.Errorf("%+v %v", l, err)
		}
		says(here, "you can talk again", "I will speak up again")
		says(here, "", "Dinner is ready.")
		if err := h.app.outside.quiet.Begin(ctx, "", time.Time{}, "ann"); err != nil {
			t.Fatal(err)
		}
		says(here, "turn off do not disturb", "all speakers")
		says(there, "安静到明天早上七点", "安静到")
	})
}
