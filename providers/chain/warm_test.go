package chain

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

// warmed counts how often it was asked to get ready.
type warmed struct {
	pt.TTS
	times int
}

func (w *warmed) Warm(context.Context) error {
	w.times++
	return nil
}

func TestChainWarmsNextMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &warmed{TTS: pt.TTS{Label: "first", Script: []pt.Speech{{Err: unavailable("first")}}}}
		second := &warmed{}
		v := newTTS(t, first, second)
		warm := func() {
			if err := providers.Warmer(v).Warm(t.Context()); err != nil {
				t.Error(err)
			}
		}
		warm()
		if first.times != 1 || second.times != 0 {
			t.Errorf("at first: %d and %d", first.times, second.times)
		}
		for range 3 {
			_, _ = speak(t.Context(), v)
		}
		warm()
		if first.times != 1 || second.times != 1 {
			t.Errorf("with the first left out: %d and %d", first.times, second.times)
		}
		time.Sleep(rest)
		warm()
		if _, err := speak(t.Context(), v); err != nil || len(first.Spoken()) != 4 {
			t.Errorf("getting ready took the probe's place: asked %d times, %v", len(first.Spoken()), err)
		}
	})
	if err := newTTS(t, &pt.TTS{}).Warm(t.Context()); err != nil {
		t.Errorf("a member that cannot get ready: %v", err)
	}
}
