package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/devicetest"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// TestCallsOfTurnAreKept: the row of each call of a turn says what became of it: a control that fails after the turn has
// ended, one that was not made and why, with digests in the place of what was said. Each counts once for its source.
func TestCallsOfTurnAreKept(t *testing.T) {
	broken := devicetest.Tool{
		Name: "self.lamp.turn_on", Description: "Turns the lamp on.", Properties: []devicetest.Property{{Name: "room", Type: "string"}},
		Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
			time.Sleep(6 * time.Second)
			return devicetest.Result{}, errors.New("no power")
		},
	}
	const order = `{"room":"the nursery"}`
	first := script{data: t.TempDir(), llm: []providertest.Step{
		providertest.Call(providers.ToolCall{ID: "c1", Name: "self_lamp_turn_on", Arguments: order}),
		providertest.Call(providers.ToolCall{ID: "c2", Name: "self_oven_turn_on", Arguments: "{}"}),
		providertest.Say("There is no oven."),
		providertest.Call(providers.ToolCall{ID: "c3", Name: "calculate", Arguments: "{}"}),
		providertest.Say("I do not know."),
	}}
	first.replace = func(h *harness, o *agent.Options) {
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, nil, nil)
	}
	inMemory(t, first, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, Tools: []devicetest.Tool{broken}})
		time.Sleep(time.Second) // until the tools are listed
		ask := func(words string) {
			t.Helper()
			if err := d.Detect(words); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second) // the turn is over
		}
		ask("turn on the lamp") // at which the device is at work for six seconds
		calls := func() map[string]store.Call {
			t.Helper()
			time.Sleep(time.Second)
			if err := h.app.stored.Log.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			all, err := h.app.stored.Turns.Calls(ctx, kitchen, store.Page{})
			if err != nil {
				t.Fatal(err)
			}
			by := map[string]store.Call{}
			for _, c := range all {
				by[c.Name] = c
			}
			return by
		}
		lamp := calls()["self_lamp_turn_on"]
		if lamp.TurnID == "" || lamp.Took != 0 || lamp.Late || lamp.ArgumentsDigest != router.DigestOf(order) {
			t.Errorf("while it goes on: %+v", lamp)
		}
		time.Sleep(10 * time.Second)
		if got := calls()["self.lamp.turn_on"]; !got.Late || got.Source != "device" || got.Kind != "control" || got.Fault != "error" || got.Took != 6*time.Second || got.ID != lamp.ID || got.ResultDigest == "" || got.Arguments != "" {
			t.Errorf("after its end: %+v", got)
		}
		ask("turn on the oven")
		ask("what is it")
		all := calls()
		if got := all["self_oven_turn_on"]; got.Refusal != string(router.RefusedUnknown) || got.Fault != "not_found" {
			t.Errorf("unknown: %+v", got)
		}
		if got := all["calculate"]; got.Refusal != string(router.RefusedInvalid) || got.Fault != "error" || got.Source != "local" {
			t.Errorf("invalid: %+v", got)
		}
		for _, c := range h.app.outside.counts.Counts() {
			switch {
			case c.Source == "device" && (c.Calls != 1 || c.Failed != 1 || c.Late != 1),
				c.Source == "local" && (c.Calls != 0 || c.Refused[router.RefusedInvalid] != 1),
				c.Source == "none" && c.Refused[router.RefusedUnknown] != 1:
				t.Errorf("counted %+v", c)
			}
		}
	})
}
