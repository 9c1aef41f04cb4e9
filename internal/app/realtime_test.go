package app

import (
	"errors"
	"testing"

	"golang.org/x/time/rate"

	"xiaozhi/agent"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// TestRealtimeAtTheStart: what is said of it there.
func TestRealtimeAtTheStart(t *testing.T) {
	const want = "a: gpt-realtime at api.openai.com"
	if got := found(t, "realtime: [a]\nllm: [rules]\nproviders: {a: {type: openai-realtime, api_key: k}}", "S2S"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestStrangersTalkIsLimited: what devices that are not known say beyond their budget is neither sent nor answered.
func TestStrangersTalkIsLimited(t *testing.T) {
	s, d := strangers{requests: rate.NewLimiter(0, 2)}, &providertest.Duplex{Script: [][]providertest.DuplexPart{providertest.Reply("a", 0, "b")}}
	if s.spareDuplex(nil) != nil {
		t.Error("nothing became something")
	}
	p := agent.Persona{Realtime: d}
	if s.spareOwn(&p); p.LLM != nil || s.limit(agent.Options{Realtime: d}).Realtime != p.Realtime {
		t.Errorf("%+v", p)
	}
	talk, err := p.Realtime.Open(t.Context(), providers.DuplexRequest{})
	if err != nil {
		t.Fatal(err)
	}
	refusals := 0
	for range 4 {
		for range 2 {
			_ = talk.Write(make([]int16, 8000))
		}
		for _, err := range talk.Respond(t.Context(), nil) {
			if failed, ok := errors.AsType[*providers.Error](err); ok && failed.Kind == providers.RateLimited {
				refusals++
			}
		}
	}
	if d.Did() != "open, respond 1s, respond 1s" || refusals != 2 {
		t.Errorf("%d refusals, and it did %s", refusals, d.Did())
	}
}
