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

func (p *player) outbox() wire.Outbox { return &outbox{player: p} }

// Send takes everything: the tape holds it.
func (o *outbox) Send(wire.Message) {}

// Audio takes or refuses, with the stamp that it gave.
func (o *outbox) Audio(uint64, []byte) (stamp uint32, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offered++
	if o.offered > len(o.audio) {
		return 0, true
	}
	a := o.audio[o.offered-1]
	if a.Stamp != nil {
		stamp = *a.Stamp
	}
	return stamp, !a.Refused
}

// HangUp does nothing: the recording says when the connection ends.
func (o *outbox) HangUp(error) {}

// Lag returns the recorded lag of the socket at this time.
func (o *outbox) Lag() time.Duration {
	d, _ := latest(o.lags, o.now()+o.o.Within)
	return d
}
