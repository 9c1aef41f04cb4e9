package turn

import (
	"testing"

	"xiaozhi/internal/wire"
)

// TestExpectAfterAnswer: while the microphone stays open, the next words are expected in
// the language of those that are answered.
func TestExpectAfterAnswer(t *testing.T) {
	for mode, want := range map[wire.Mode]bool{wire.Realtime: true, wire.Auto: false} {
		s := in(mode, None)
		s.Said[0].Text = Text{Status: Final, Words: "how are you today", Lang: "en", Provider: "asr", At: epoch}
		r := rules()
		r.DeviceLang = "zh"
		_, effects := r.Next(s, Seen{Now: epoch}, SpeechEnded{ID: 1, Epoch: 1, Attempt: 1, Spoken: epoch, Ended: epoch})
		expected := false
		for _, f := range effects {
			if e, ok := f.(Expect); ok {
				expected = e.Lang == "en"
			}
		}
		if expected != want {
			t.Errorf("mode %s: expected English %v, want %v (%v)", mode, expected, want, effects)
		}
	}
}
