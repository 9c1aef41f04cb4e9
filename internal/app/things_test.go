package app

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/devicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// TestThingThatDoesNothing: the lamp of older firmware that does not do what it is told is not believed: the user hears so,
// once, at the next pause; the model is told what became of it, and the row of the call says so. One that does it is.
func TestThingThatDoesNothing(t *testing.T) {
	var power, broken atomic.Bool
	lamp := devicetest.Thing{
		Name: "Lamp", Description: "a lamp", Properties: []devicetest.ThingProperty{{Name: "power", Type: "boolean"}},
		Methods: []devicetest.ThingMethod{
			{Name: "TurnOn", Description: "Turns it on", Call: func(map[string]any) { power.Store(!broken.Load()) }},
			{Name: "TurnOff", Description: "Turns it off", Call: func(map[string]any) { power.Store(false) }},
		},
		State: func() map[string]any { return map[string]any{"power": power.Load()} },
	}
	order := func(id, name string) providertest.Step {
		return providertest.Call(providers.ToolCall{ID: id, Name: name, Arguments: "{}"})
	}
	first := script{data: t.TempDir(), llm: []providertest.Step{
		order("c1", "self_lamp_turn_on"), order("c2", "self_lamp_turn_off"), order("c3", "self_lamp_turn_on"), providertest.Say("It seems to be broken."),
	}}
	first.replace = func(h *harness, o *agent.Options) {
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, nil, nil)
	}
	inMemory(t, first, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, Language: "en-US", NoMCP: true, OpenListen: true, Things: []devicetest.Thing{lamp}})
		time.Sleep(time.Second)
		ask := func(words string) (told []string) {
			t.Helper()
			if err := d.Detect(words); err != nil {
				t.Fatal(err)
			}
			for {
				wait, cancel := context.WithTimeout(ctx, 10*time.Second)
				r, err := d.WaitReply(wait)
				cancel()
				if err != nil {
					return told
				}
				told = append(told, r.Text())
			}
		}
		failures := func(told []string) int { return strings.Count(strings.Join(told, "\n"), "Sorry, I could not") }
		for _, words := range []string{"turn on the lamp", "turn off the lamp"} {
			if told := ask(words); failures(told) > 0 || len(told) != 1 {
				t.Errorf("%s: %q", words, told)
			}
		}
		broken.Store(true)
		told := ask("turn on the lamp")
		if failures(told) != 1 || !strings.Contains(strings.Join(told, "\n"), "the device reports no change") {
			t.Errorf("it does nothing: %q", told)
		}
		ask("what is wrong")
		if shown := h.dialogue(); strings.Count(shown, "the device reports no change") < 1 {
			t.Errorf("the model is shown\n%s", shown)
		}
		time.Sleep(time.Second)
		if err := h.app.stored.Log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		calls, err := h.app.stored.Turns.Calls(ctx, kitchen, store.Page{})
		if err != nil || len(calls) != 3 {
			t.Fatalf("%+v, %v", calls, err)
		}
		for i, late := range []bool{true, false, false} { // the newest first
			if calls[i].Late != late || late != (calls[i].Fault == "error") || calls[i].Source != "iot" {
				t.Errorf("%d: %+v", i, calls[i])
			}
		}
	})
}
