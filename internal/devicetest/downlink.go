package devicetest

import (
	"time"

	"xiaozhi/audio"
)

// stereoBit of the first byte of an Opus packet (RFC 6716, 3.1).
const stereoBit = 0x04

// downlink judges the binary messages of the server and hands their sound to the
// loudspeaker, if the device's present state lets it. Only the receiver calls it.
type downlink struct {
	link     *link
	body     *body
	journal  *Journal
	protocol int
	aec      bool
	onFrame  func(at time.Time, message []byte) // nil: each packet makes an event
	stamped  uint32                             // the largest timestamp so far
}

func newDownlink(o Options, l *link, b *body, j *Journal) *downlink {
	return &downlink{link: l, body: b, journal: j, protocol: o.Protocol, aec: o.Sound.AEC, onFrame: o.Sound.OnFrame}
}

// receive takes a binary message, as the network task of the firmware does.
func (d *downlink) receive(now time.Time, data []byte) {
	if len(data) > maxBinary {
		d.journal.violate(now, RuleTooLong, "binary message of %d bytes, at most %d", len(data), maxBinary)
	}
	if d.onFrame != nil {
		d.onFrame(now, data)
	} else {
		d.journal.add(Event{At: now, Kind: KindFrame, Size: len(data)})
	}
	d.journal.count(func(s *Stats) { s.FramesIn++ })
	packet, timestamp, length, ok := d.unpack(now, data)
	if !ok || !d.play(now, packet, length, timestamp) {
		d.journal.count(func(s *Stats) { s.Dropped++ })
	}
}

// unpack takes the packet out of its frame. False: it cannot be played.
func (d *downlink) unpack(now time.Time, data []byte) (packet []byte, timestamp uint32, length time.Duration, ok bool) {
	if d.link.hello.Load() == nil {
		d.journal.violate(now, RuleBeforeHello, "a frame before the hello")
		return nil, 0, 0, false
	}
	packet, timestamp, err := frameDown(d.protocol, data)
	if err != nil {
		d.journal.violate(now, RuleFraming, "%s", err)
		return nil, 0, 0, false
	}
	d.checkTimestamp(now, timestamp)
	length, ok = d.checkPacket(now, packet)
	return packet, timestamp, length, ok
}

// checkTimestamp holds the rule of echo cancelling: with it timestamps grow,
// without it they are 0 (4.5). Only framing 2 carries them.
func (d *downlink) checkTimestamp(now time.Time, timestamp uint32) {
	switch {
	case d.protocol != 2:
	case !d.aec && timestamp != 0:
		d.journal.violate(now, RuleTimestamp, "timestamp %d to a device without echo cancelling by the server", timestamp)
	case d.aec && timestamp <= d.stamped:
		d.journal.violate(now, RuleTimestamp, "timestamp %d after %d: must grow", timestamp, d.stamped)
	}
	d.stamped = max(d.stamped, timestamp)
}

// checkPacket holds what the decoder needs (4.2). False: the packet cannot be played.
func (d *downlink) checkPacket(now time.Time, packet []byte) (time.Duration, bool) {
	if len(packet) == 0 {
		d.journal.violate(now, RulePacket, "an empty frame")
		return 0, false
	}
	if packet[0]&stereoBit != 0 {
		d.journal.violate(now, RulePacket, "a stereo packet")
	}
	length, err := audio.PacketDuration(packet)
	if err != nil {
		d.journal.violate(now, RulePacket, "%s", err)
		return 0, false
	}
	agreed := d.link.packetLength()
	if length != agreed {
		d.journal.violate(now, RulePacketDuration, "a packet of %s, the hello said %s", length, agreed)
	}
	return length, length <= agreed || d.body.traits.noConnecting
}

// play gives a packet to the reply that it belongs to and to the loudspeaker. It
// reports false for a packet that is lost.
func (d *downlink) play(now time.Time, packet []byte, length time.Duration, timestamp uint32) bool {
	b := d.body
	b.mu.Lock()
	defer b.mu.Unlock()
	reply := b.check.frame(now)
	kept := d.take(now, packet, length, reply, timestamp)
	if reply == nil {
		return kept
	}
	if !kept {
		reply.Dropped++
	}
	if more := reply.Underruns - reply.counted; more > 0 {
		reply.counted = reply.Underruns
		d.journal.count(func(s *Stats) { s.Underruns += more })
	}
	return kept
}

// take puts a packet into the playback queue if the state allows it. The caller holds the body's lock.
func (d *downlink) take(now time.Time, packet []byte, length time.Duration, reply *Reply, timestamp uint32) bool {
	b := d.body
	if b.state != Speaking && !b.traits.anyState {
		if !b.check.isCut() { // what is on its way when the device cuts a reply is no fault
			d.journal.violate(now, RuleFrameDropped, "a frame met a device that is %s", b.state)
			return false
		}
		b.check.silent = d.decoded(now, b.speaker.decodeLate(packet)).silent // the closing frame is judged, not played
		return false
	}
	sound := d.decoded(now, b.speaker.decode(packet))
	if sound.pcm == nil && !b.speaker.mute {
		return false
	}
	from, before, kept := b.speaker.accept(now, length, sound, reply, timestamp)
	if !kept {
		d.journal.violate(now, RuleQueueFull, "%d packets wait already", b.speaker.player.limit)
	}
	if !from.IsZero() {
		b.check.placed(now, from, before, length, sound.silent)
	}
	return kept
}

// decoded notes a packet that holds no sound.
func (d *downlink) decoded(now time.Time, sound sample) sample {
	if sound.pcm == nil && !d.body.speaker.mute {
		d.journal.violate(now, RulePacket, "%d samples, %v", sound.samples, sound.err)
	}
	return sound
}
