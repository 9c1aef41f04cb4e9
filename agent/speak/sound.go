package speak

import (
	"fmt"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

// encoder makes packets of PCM that continue what the device's decoder has heard.
// Its owner guards it.
type encoder struct {
	format    audio.Format
	coding    audio.Coding
	enc       *audio.Encoder // made with the first frame that needs it
	buf       []byte
	waiting   bool // a frame was encoded and is not handed over yet
	outOfSync bool // the device's decoder is not where enc is: it got other packets, or not all of enc's
}

// prepare makes enc ready for the next frame.
func (e *encoder) prepare() error {
	if e.enc == nil {
		enc, err := audio.NewEncoderOf(e.format, e.coding)
		if err != nil {
			return fmt.Errorf("make an encoder: %w", err)
		}
		e.enc, e.buf, e.outOfSync = enc, make([]byte, audio.MaxPacket), false
	}
	if e.outOfSync {
		e.outOfSync = false
		return e.enc.Reset()
	}
	return nil
}

// encode encodes one frame of PCM. The packet is good until the next.
func (e *encoder) encode(pcm []int16) ([]byte, error) {
	n, err := e.enc.Encode(pcm, e.buf)
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	e.waiting = true
	return e.buf[:n], nil
}

// closing is a packet in which the sound ends; nil: there cannot be one.
func (e *encoder) closing() []byte {
	if e.prepare() != nil {
		return nil
	}
	n, err := e.enc.Silence(e.buf)
	if err != nil {
		return nil
	}
	return append([]byte(nil), e.buf[:n]...)
}

// due returns when the next frame may leave, which is not before guard after tts start, and
// whether play-out has a schedule that says so.
func (p *Player) due(now time.Time, guard time.Duration) (at time.Time, scheduled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.pacer.Due(now)
	scheduled = !at.IsZero()
	if first := p.gate.started.Add(guard); at.Before(first) {
		at = first
	}
	return at, scheduled
}

// halted reports whether the reply is paused.
func (p *Player) halted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gate.state == gatePaused
}

// prepare makes the encoder ahead of the first frame: that takes as long as
// encoding one. What fails is met again where it is used.
func (p *Player) prepare() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.state != gateClosed && p.sound.enc == nil {
		_ = p.sound.prepare()
	}
}

// encode turns one frame of PCM, which it may change, into a packet, which is
// good until the next; nil when the turn is over.
func (p *Player) encode(pcm []int16) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.state == gateClosed {
		return nil, nil
	}
	if err := p.sound.prepare(); err != nil {
		return nil, err
	}
	if p.pacer.Started() && p.pacer.Lead(time.Now()) == 0 {
		audio.FadeIn(pcm, p.format.Rate) // it begins out of silence
	}
	return p.sound.encode(pcm)
}

// passthrough lets a packet pass that was encoded elsewhere; nil when the turn is
// over.
func (p *Player) passthrough(packet []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.state == gateClosed {
		return nil
	}
	p.sound.outOfSync = true
	return packet
}

// beginSegment announces the segment whose first frame is next.
func (p *Player) beginSegment(s Segment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.state == gateClosed {
		return
	}
	p.ledger.beginSegment(s)
	if s.aloud && s.Display == "" {
		return // its words are not known yet
	}
	p.out.Send(wire.Message{Kind: wire.MessageSentenceStart, Turn: p.turn, Text: s.Display})
}

// frame hands one packet over. False: it was not taken, because the reply is
// paused or the outbox is full; a turn that is over counts as taken.
func (p *Player) frame(packet []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gate.state == gateClosed:
		return true
	case p.gate.state == gatePaused || !p.hand(packet):
		return false
	}
	p.sound.waiting = false
	return true
}

// hand gives one packet to the outbox and reports whether it was taken. The caller
// holds mu.
func (p *Player) hand(packet []byte) bool {
	stamp, ok := p.out.Audio(p.turn, packet)
	if !ok {
		return false
	}
	now := time.Now()
	p.taps.FarEnd.Sent(packet, stamp)
	p.taps.SelfEcho.Played(packet, p.firstOut.IsZero(), now)
	if p.taps.Sent != nil {
		p.taps.Sent.Add(packet)
	}
	if p.firstOut.IsZero() {
		p.firstOut = now
	}
	if p.pacer.Sent(now) {
		var move time.Duration
		p.place.release()
		p.place, move = p.clock.take(p.pacer.Next(), p.format.Frame)
		p.pacer.Shift(move)
	}
	p.ledger.frameSent()
	return true
}

// dry sends one frame in which the sound ends softly, because the next one is not
// there in time. It belongs to the segment that it interrupts.
func (p *Player) dry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fadeOut()
}

// fadeOut sends one frame that ramps to silence, unless the last packets were
// encoded elsewhere. The caller holds mu.
func (p *Player) fadeOut() {
	if p.gate.state == gateClosed || p.sound.enc == nil || p.sound.outOfSync || !p.pacer.Started() {
		return
	}
	if n, err := p.sound.enc.Silence(p.sound.buf); err == nil {
		p.sound.outOfSync = !p.hand(p.sound.buf[:n]) // a full outbox does without, and the device's decoder too
	}
}

// late tells that a frame that was ready left d after it was due: the lead adapts
// to it ([audio.Pacer]). So it does to what waits before the socket.
func (p *Player) late(d time.Duration) {
	d = max(d, p.out.Lag())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate.state != gateClosed && (p.resumed.IsZero() || time.Since(p.resumed) > d) {
		p.pacer.Late(d) // a pause on purpose is no lateness, nor is the end of one by a cut
	}
}

// playoutEnd returns when the device will have played all it was given.
func (p *Player) playoutEnd() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pacer.PlayoutEnd()
}
