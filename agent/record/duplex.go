package record

import (
	"context"
	"iter"
	"slices"
	"sync"

	"xiaozhi/providers"
)

// tapedDuplex records what somebody says who hears and speaks by itself.
type tapedDuplex struct {
	providers.Duplex
	tape  *Tape
	rests *lastRest
}

// lastRest remembers whether a provider rested when that was recorded last.
type lastRest struct {
	mu    sync.Mutex
	rests bool
}

func newTapedDuplex(d providers.Duplex, t *Tape) tapedDuplex { return tapedDuplex{d, t, &lastRest{}} }

// Warm lets it get ready; that is not recorded.
func (d tapedDuplex) Warm(ctx context.Context) error { return warm(ctx, d.Duplex) }

// Rests reports whether it had better not be asked, and records that where it changes.
func (d tapedDuplex) Rests() bool {
	r, ok := d.Duplex.(interface{ Rests() bool })
	now := ok && r.Rests()
	d.rests.mu.Lock()
	defer d.rests.mu.Unlock()
	if now != d.rests.rests {
		d.rests.rests = now
		d.tape.add(Entry{Duplex: &Duplex{Step: Asked, Rests: now}})
	}
	return now
}

// Open opens a session whose answers are recorded.
func (d tapedDuplex) Open(ctx context.Context, req providers.DuplexRequest) (providers.DuplexSession, error) {
	s, err := d.Duplex.Open(ctx, req)
	if err != nil {
		return nil, err
	}
	return tapedSession{s, d.tape}, nil
}

type tapedSession struct {
	providers.DuplexSession
	tape *Tape
}

// Respond records an answer.
func (s tapedSession) Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		n := s.tape.count("duplex")
		add := func(e Duplex) { e.N = n; s.tape.add(Entry{Duplex: &e}) }
		add(Duplex{Step: Asked, Results: slices.Clone(results)})
		follow(ctx, s.DuplexSession.Respond(ctx, results), yield,
			func(d providers.DuplexDelta) {
				e := Duplex{Step: Gave}
				if len(d.Sound.PCM)+len(d.Sound.Packets) > 0 {
					e.Sound, d.Sound = soundOf(d.Sound), providers.Sound{}
				}
				e.Delta = &d
				add(e)
			},
			func(step Step, f *Fault) { add(Duplex{Step: step, Fault: f}) })
	}
}
