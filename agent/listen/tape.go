package listen

import (
	"time"

	"xiaozhi/audio"
)

// tape keeps the packets of one utterance as they came, those of the moment before it was noticed among them. A nil
// tape keeps nothing. It is for the listener's goroutine.
type tape struct {
	packets *audio.Packets // nil: there are none
	ahead   time.Duration  // kept of before the utterance
	whole   bool           // all that comes is the utterance
}

// begin says that the utterance is noticed.
func (t *tape) begin() {
	if t != nil {
		if !t.whole && t.packets != nil {
			t.packets.KeepLast(t.ahead)
		}
		t.whole = true
	}
}

// add keeps a copy of a packet.
func (t *tape) add(packet []byte) {
	if t != nil {
		t.room().Add(packet)
	}
}

// lost keeps the time of a packet that never came.
func (t *tape) lost() {
	if t != nil {
		t.room().Lost()
	}
}

// room drops what came too long before the utterance, now and then.
func (t *tape) room() *audio.Packets {
	if t.packets == nil {
		t.packets = &audio.Packets{}
	}
	if !t.whole && t.packets.Length() > 2*t.ahead {
		t.packets.KeepLast(t.ahead)
	}
	return t.packets
}
