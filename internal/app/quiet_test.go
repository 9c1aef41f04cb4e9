package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// TestLogHoldsNoWords: above the level of debugging the log says what happened
// and how long it took, but nothing of what was said: not the guess of a
// recogniser, not the text of the user, and not the reply. Only the line of a
// tool call has a summary of its arguments and result.
func TestLogHoldsNoWords(t *testing.T) {
	const secret = "marmalade"
	does := script{
		asr: []providertest.Hearing{{Text: secret + " guessed", Rejected: true}, {Text: "do you like " + secret, Language: "en"}},
		llm: []providertest.Step{
			{{Delta: providers.Delta{Thought: "what is " + secret}}, {Delta: providers.Delta{Text: "I like " + secret + "."}}},
			providertest.Call(providers.ToolCall{ID: "c1", Name: "self_note_get", Arguments: `{"of":"` + secret + `"}`}),
			providertest.Say("I have noted " + secret + "."),
		},
	}
	note := devicetest.Tool{
		Name: "self.note.get", Description: "Read a note.", Properties: []devicetest.Property{{Name: "of", Type: "string"}},
		Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
			return devicetest.Result{Text: secret + " is on the list"}, nil
		},
	}
	inMemory(t, does, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.dial(ctx, devicetest.Options{OpenListen: true, Tools: []devicetest.Tool{note}})
		for range 2 {
			sayAll(ctx, t, d, time.Second)
			if _, err := d.WaitReply(ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := d.Detect("take a note of " + secret); err != nil {
			t.Fatal(err)
		}
		if r, err := d.WaitReply(ctx); err != nil || !strings.Contains(r.Text(), "noted "+secret) {
			t.Fatalf("reply %+v, %v", r, err)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(h.log.String()) {
			_, msg, _ := strings.Cut(line, "msg=")
			for _, m := range []string{`"transcript rejected"`, `"rejected guess"`, "turn ", `"tool call"`} {
				seen[m] = seen[m] || strings.HasPrefix(msg, m)
			}
			if strings.Contains(line, secret) && !strings.Contains(line, "level=DEBUG") && !strings.HasPrefix(msg, `"tool call"`) {
				t.Errorf("the log says %s", line)
			}
		}
		if len(seen) != 4 || !seen[`"transcript rejected"`] || !seen[`"rejected guess"`] || !seen["turn "] || !seen[`"tool call"`] {
			t.Errorf("lines seen: %v", seen)
		}
	})
}
