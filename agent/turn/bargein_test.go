package turn

import (
	"testing"

	"xiaozhi/internal/wire"
)

// TestReplyOverTwoUndecided: of two utterances over a reply the first was to be
// answered after it, and means nothing by then: both are let go.
func TestReplyOverTwoUndecided(t *testing.T) {
	s := State{Mic: Mic{Mode: wire.Auto, Deaf: true}}
	do := func(e Event, playing string) {
		s, _ = rules().Next(s, Seen{Now: epoch, Playing: playing}, e)
	}
	do(ListenStart{wire.Auto}, "")
	do(Typed{"hello there"}, "")
	do(Ready{1}, "")
	const asks = "Shall I?"
	do(SpeechStarted{ID: 2, Epoch: s.Mic.Epoch}, asks)
	do(SpeechStarted{ID: 3, Epoch: s.Mic.Epoch}, asks)
	do(SpeechEnded{ID: 2, Epoch: s.Mic.Epoch, Attempt: 1}, asks)
	do(Transcript{ID: 2, Attempt: 1, Text: Text{Status: Final, Words: "uh-huh"}}, asks)
	do(SpeechEnded{ID: 3, Epoch: s.Mic.Epoch, Attempt: 1}, asks)
	if len(s.Said) != 2 {
		t.Fatalf("undecided: %+v", s.Said)
	}
	do(Finished{Turn: 1}, "once upon a time")
	if len(s.Said) != 0 || s.Phase() != Listening {
		t.Errorf("%s, %+v", s.Phase(), s.Said)
	}
}
