package agent

import (
	"testing"
	"time"
)

// partsKeeper holds every turn that it is given to it that the parts of the wait are the wait.
type partsKeeper struct {
	keeperInMemory
	t     *testing.T
	turns []*Turn
}

func (k *partsKeeper) Turn(turn *Turn) {
	k.turns = append(k.turns, turn)
	f := &turn.Figures
	if sum := f.EOU + f.ASR + f.TTFS + f.TTFB + f.Added; f.E2E > 0 && sum != f.E2E {
		k.t.Errorf("%q: %v + %v + %v + %v + %v is %v, the user waited %v", turn.Said, f.EOU, f.ASR, f.TTFS, f.TTFB, f.Added, sum, f.E2E)
	}
	m := &f.Marks
	for _, at := range []time.Time{m.Endpoint, m.Sent.Start, m.Sent.First, m.Sent.Stop} {
		if !at.IsZero() && at.Before(m.Zero) {
			k.t.Errorf("%q: %+v: a moment before the wait", turn.Said, m)
		}
	}
	if !m.Sent.First.IsZero() && (m.Sent.Start.After(m.Sent.First) || m.Sent.Stop.Before(m.Sent.First)) {
		k.t.Errorf("%q: %+v", turn.Said, m.Sent)
	}
	k.keeperInMemory.Turn(turn)
}
