package chain

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// TestEmbedderRests: what makes vectors is left out after three failures, and tried again after a rest.
func TestEmbedderRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &providers.Error{Provider: "x", Kind: providers.Unavailable, Err: errors.New("down")}
		m := &providertest.Embedder{Label: "x", Err: down}
		e, err := NewEmbedder([]providers.Embedder{m}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ask := func() error {
			_, err := e.Embed(t.Context(), providers.EmbedRequest{Texts: []string{"a"}})
			return err
		}
		for range 5 {
			if ask() == nil {
				t.Error("it has not failed")
			}
		}
		if n := len(m.Asked()); n != maxFailures || e.States()[0].Condition != Open {
			t.Errorf("asked %d times, %v", n, e.States()[0])
		}
		time.Sleep(rest)
		m.Fail(nil)
		if err := ask(); err != nil || e.States()[0].Condition != Closed || e.States()[0].Given.IsZero() {
			t.Errorf("%v, %+v", err, e.States()[0])
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 5 {
			if _, err := e.Embed(ctx, providers.EmbedRequest{Texts: []string{"a"}}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if e.States()[0].Condition != Closed {
			t.Error("who hangs up says nothing of it")
		}
	})
}
