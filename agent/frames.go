package agent

import (
	"fmt"
	"time"

	"xiaozhi/audio"
)

// This file is how the frames of a turn leave.

// due is when the next frame may leave; not after now means at once.
func (f *floor) due(now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pacer.Due(now)
}

// encode turns one frame of PCM, which it may change, into a packet, which is
// good until the next; nil when the floor is gone.
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
	f.waiting = true
	return f.buf[:n], nil
}

// prepare makes the encoder ahead of the first frame: that takes as long as
// encoding one. What fails is met again where it is used.
func (f *floor) prepare() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && f.enc == nil {
		_ = f.encoder()
	}
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

// foreign lets a packet pass that was encoded elsewhere; nil when the floor is gone.
func (f *floor) foreign(packet []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.strange = true
	return packet
}

// frame hands one packet over. False: it was not taken, because the outbox is
// full; the floor's end counts as taken.
func (f *floor) frame(packet []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return true
	}
	if f.paused || !f.hand(packet) {
		return false
	}
	f.waiting = false
	return true
}

// hand hands one packet over. The caller holds mu.
func (f *floor) hand(packet []byte) bool {
	stamp, ok := f.out.Audio(f.turn, packet)
	if !ok {
		return false
	}
	now := time.Now()
	f.monitor.Sent(packet, stamp)
	f.loopback.Played(packet, f.firstOut.IsZero(), now)
	f.pacer.Sent(now)
	if f.firstOut.IsZero() {
		f.firstOut = now
		f.spread()
	}
	if n := len(f.spoken); n > 0 {
		f.spoken[n-1].frames++
	}
	return true
}

// hush sends one frame in which the sound ends softly, because the next one is
// not there in time. It belongs to the sentence that it interrupts.
func (f *floor) hush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.soften()
}

// soften is hush. The caller holds mu.
func (f *floor) soften() {
	if f.closed || f.enc == nil || f.strange || !f.pacer.Started() {
		return // packets of others end as they end
	}
	if n, err := f.enc.Silence(f.buf); err == nil {
		f.strange = !f.hand(f.buf[:n]) // a full outbox does without, and the device's decoder too
	}
}

// late tells that a frame that was ready left d after it was due: the lead
// adapts to it (audio.Pacer). So it does to what waits before the socket.
func (f *floor) late(d time.Duration) {
	d = max(d, f.out.Lag())
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && (f.resumed.IsZero() || time.Since(f.resumed) > d) {
		f.pacer.Late(d) // a pause on purpose is no lateness, nor is the end of one by a cut
	}
}

// playoutEnd is when the device will have played all it was given.
func (f *floor) playoutEnd() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pacer.PlayoutEnd()
}
