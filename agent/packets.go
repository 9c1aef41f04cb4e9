package agent

import (
	"fmt"
	"time"

	"xiaozhi/audio"
)

// This file is how the floor makes packets, and what it learns when they leave.

// encode turns one frame of PCM, which it may change, into a packet; nil when
// the floor is gone.
func (f *floor) encode(pcm []int16) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nil
	}
	if err := f.encoder(); err != nil {
		return nil, err
	}
	if f.pacer.Started() && f.pacer.Lead(time.Now()) == 0 {
		audio.FadeIn(pcm, f.format.Rate) // it begins out of silence
	}
	n, err := f.enc.Encode(pcm, f.buf)
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	return f.packets.put(f.buf[:n]), nil
}

// encoder makes enc ready for the next frame. The caller holds mu.
func (f *floor) encoder() error {
	if f.enc == nil {
		enc, err := audio.NewEncoder(f.format)
		if err != nil {
			return fmt.Errorf("make an encoder: %w", err)
		}
		f.enc, f.buf, f.strange = enc, make([]byte, audio.MaxPacket), false
	}
	if f.strange {
		f.strange = false
		return f.enc.Reset()
	}
	return nil
}

// foreign makes a packet of one that was encoded elsewhere, of which it makes a
// copy; nil when the floor is gone.
func (f *floor) foreign(packet []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.strange = true
	return f.packets.put(packet)
}

// hush sends one frame in which the sound ends softly, because the next one is
// not there in time. It belongs to the sentence that it interrupts.
func (f *floor) hush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.enc == nil || f.strange {
		return // packets of others end as they end
	}
	if n, err := f.enc.Silence(f.buf); err == nil {
		f.hand(f.packets.put(f.buf[:n])) // a full outbox does without
	}
}

// late tells that a frame that was ready left d after it was due: the lead
// adapts to it (audio.Pacer). So it does to what waits before the socket, where
// the outbox can tell.
func (f *floor) late(d time.Duration) {
	if out, ok := f.out.(Lagging); ok {
		d = max(d, out.Lag())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pacer.Late(d)
}

// packetRing keeps the buffers of packets that were handed to an Outbox.
type packetRing struct {
	slots [PacketsHeld][]byte
	next  int
}

// put copies a packet into the buffer that was used longest ago.
func (r *packetRing) put(packet []byte) []byte {
	slot := r.slots[r.next]
	if slot == nil {
		slot = make([]byte, 0, packetBytes)
	}
	slot = append(slot[:0], packet...)
	r.slots[r.next] = slot
	r.next = (r.next + 1) % len(r.slots)
	return slot
}

// packetBytes is what a packet of speech takes, with room to spare.
const packetBytes = 256
