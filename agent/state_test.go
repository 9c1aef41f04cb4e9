package agent

import (
	"fmt"
	"testing"

	"xiaozhi/internal/wire"
)

// TestNext goes through every state and signal. A row lists what each signal,
// in the order of its declaration, leads to; "-" means that it has no meaning.
func TestNext(t *testing.T) {
	states := []State{Idle, Listening, Recognizing, Thinking, Speaking, Closed}
	signals := []signal{sigListen, sigText, sigEndpoint, sigResume, sigFinal, sigStart, sigPlayedOut, sigServer, sigBargeIn, sigAbort, sigHangUp}
	const _i, _l, _r, _t, _s, _c, no = Idle, Listening, Recognizing, Thinking, Speaking, Closed, State(-1)
	for _, c := range []struct {
		name string
		mode wire.Mode
		open bool
		want [6][11]State
	}{
		{"auto, microphone open", wire.Auto, true, [6][11]State{
			//           lis text end res fin sta pla ser bar abo hang
			Idle:        {_l, _t, no, no, no, no, no, _t, no, no, _c},
			Listening:   {_l, _t, _r, no, _t, no, no, _t, no, _l, _c},
			Recognizing: {_l, _t, no, _l, _t, no, no, _t, no, _l, _c},
			Thinking:    {_l, _t, no, _l, no, _s, _l, _t, _l, _l, _c},
			Speaking:    {_l, _t, no, no, no, no, _l, _t, _l, _l, _c},
			Closed:      {no, no, no, no, no, no, no, no, no, no, no},
		}},
		{"manual", wire.Manual, true, [6][11]State{
			Idle:        {_l, _t, no, no, no, no, no, _t, no, no, _c},
			Listening:   {_l, _t, _r, no, _t, no, no, _t, no, _i, _c},
			Recognizing: {_l, _t, no, _l, _t, no, no, _t, no, _i, _c},
			Thinking:    {_l, _t, no, _l, no, _s, _i, _t, _l, _i, _c},
			Speaking:    {_l, _t, no, no, no, no, _i, _t, _l, _i, _c},
			Closed:      {no, no, no, no, no, no, no, no, no, no, no},
		}},
		{"realtime, nobody said listen", wire.Realtime, false, [6][11]State{
			Idle:        {_l, _t, no, no, no, no, no, _t, no, no, _c},
			Listening:   {_l, _t, _r, no, _t, no, no, _t, no, _i, _c},
			Recognizing: {_l, _t, no, _l, _t, no, no, _t, no, _i, _c},
			Thinking:    {_l, _t, no, _l, no, _s, _i, _t, _l, _i, _c},
			Speaking:    {_l, _t, no, no, no, no, _i, _t, _l, _i, _c},
			Closed:      {no, no, no, no, no, no, no, no, no, no, no},
		}},
	} {
		for _, s := range states {
			for i, sig := range signals {
				got, ok := next(s, sig, c.mode, c.open)
				want := c.want[s][i]
				if want == no {
					if ok || got != s {
						t.Errorf("%s: next(%s, %s) = %s, %v; want no move", c.name, s, sig, got, ok)
					}
				} else if !ok || got != want {
					t.Errorf("%s: next(%s, %s) = %s, %v; want %s", c.name, s, sig, got, ok, want)
				}
			}
		}
	}
}

func TestStateNames(t *testing.T) {
	seen := map[string]bool{}
	for s := Idle; s <= Closed; s++ {
		seen[s.String()] = true
	}
	if len(seen) != 6 || seen["unknown"] {
		t.Errorf("state names are not distinct: %v", seen)
	}
	if got := fmt.Sprint(State(99)); got != "unknown" {
		t.Errorf("State(99) = %q", got)
	}
	for s := sigListen; s <= sigHangUp; s++ {
		if s.String() == "" {
			t.Errorf("signal %d has no name", s)
		}
	}
}
