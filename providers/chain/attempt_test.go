package chain

import (
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

// TestAttemptsOfAChain: each member that was asked is noted with what came of it.
func TestAttemptsOfAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &pt.LLM{Label: "slow", Script: []pt.Step{{{Hang: true}}}}
		broken := &pt.LLM{Label: "broken", Script: []pt.Step{pt.Fail(unavailable("broken"))}}
		good := &pt.LLM{Label: "good", Script: []pt.Step{append(pt.Say("hello").After(200*time.Millisecond), pt.Part{Delta: providers.Delta{Usage: providers.Usage{Prompt: 7, Completion: 3}}})}}
		c := newLLM(t, Options{}, slow, broken, good)
		var noted []timeline.Attempt
		ctx := timeline.WithAttempts(t.Context(), func(a timeline.Attempt) { noted = append(noted, a) })
		for _, err := range c.Generate(ctx, providers.LLMRequest{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]timeline.Attempt{}
		for _, a := range noted {
			got[a.Provider] = a
		}
		if len(noted) != 3 || got["slow"].Outcome != timeline.Lost || got["broken"].Outcome != timeline.Failed || got["broken"].Fault == "" {
			t.Errorf("%+v", noted)
		}
		if a := got["good"]; a.Outcome != timeline.Answered || a.First != 200*time.Millisecond || a.Tokens != (timeline.Tokens{Prompt: 7, Completion: 3}) || a.Op != "think" {
			t.Errorf("%+v", a)
		}
	})
}

// TestAttemptOfAVoice: it says how much was spoken, also when nobody wants the rest.
func TestAttemptOfAVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTTS(t, &pt.TTS{Label: "v"})
		var noted []timeline.Attempt
		ctx := timeline.WithAttempts(t.Context(), func(a timeline.Attempt) { noted = append(noted, a) })
		for range v.Synthesize(ctx, providers.TTSRequest{Text: "hello"}) {
			break
		}
		if len(noted) != 1 || noted[0].Characters != 5 || noted[0].Op != "speak" {
			t.Errorf("%+v", noted)
		}
	})
}
