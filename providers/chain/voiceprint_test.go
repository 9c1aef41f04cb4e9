package chain_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/providertest"
)

// TestVoiceprintRests: a service that fails is asked three times, then not for half a minute, but by a person who waits.
func TestVoiceprintRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &providertest.Voiceprint{Fault: &providers.Error{Provider: "fake", Op: "identify", Kind: providers.Unavailable, Err: errors.New("away")}}
		c, err := chain.NewVoiceprint([]providers.Voiceprint{v, &providertest.Voiceprint{}}, chain.Options{})
		if err != nil {
			t.Fatal(err)
		}
		among := []providers.Print{{ID: "1", Person: "anna", Model: v.Scale().Model, Data: []byte{100, 0}}}
		ask := func() error {
			_, err := c.Identify(t.Context(), providertest.VoiceOf(100, time.Second), among)
			return err
		}
		for range 5 {
			if err := ask(); err == nil {
				t.Error("no error")
			}
		}
		if n := v.Asked(); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
		if s := c.States(); len(s) != 1 || s[0].Condition != chain.Open || s[0].Fault == nil {
			t.Errorf("states %+v", s)
		}
		v.Fault = nil
		if _, err := c.Enrol(t.Context(), "2", providertest.VoiceOf(200, time.Second)); err != nil { // which shows that it is back
			t.Error(err)
		}
		if err := ask(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Identify(ctx, providertest.VoiceOf(100, time.Second), among); !errors.Is(err, context.Canceled) || c.States()[0].Failures != 0 {
			t.Errorf("%v, %+v", err, c.States())
		}
	})
}
