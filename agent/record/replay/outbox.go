package replay

import (
	"sync"
	"time"

	"xiaozhi/internal/wire"
)

// outbox takes what it took, and refuses what it refused.
type outbox struct {
	*player
	mu      sync.Mutex
	offered int
}

// stamping is an outbox that stamps as it did.
type stamping struct{ *outbox }

var (
	_ wire.Lagging = (*outbox)(nil)
	_ wire.Stamper = stamping{}
)

func (p *player) outbox() wire.Outbox {
	o := &outbox{player: p}
	if p.stamp {
		return stamping{o}
	}
	return o
}

// Send takes everything: the tape holds it.
func (o *outbox) Send(wire.Message) {}

// Audio takes or refuses.
func (o *outbox) Audio(uint64, []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offered++
	return o.offered > len(o.audio) || !o.audio[o.offered-1].Refused
}

// HangUp does nothing: the recording says when the connection ends.
func (o *outbox) HangUp(error) {}

// Lag is what the socket's was at this time.
func (o *outbox) Lag() time.Duration {
	d, _ := latest(o.lags, o.now()+o.o.Within)
	return d
}

// Stamped is the stamp of the packet that was taken last.
func (o stamping) Stamped() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	for n := min(o.offered, len(o.audio)); n > 0; n-- {
		if stamp := o.audio[n-1].Stamp; stamp != nil {
			return *stamp
		}
	}
	return 0
}
