package devicetest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"xiaozhi/audio"
)

// stereoBit of the first byte of an Opus packet (RFC 6716, 3.1).
const stereoBit = 0x04

// downlink judges the binary messages of the server and hands their sound to the
// loudspeaker, if the device's present state lets it. Only the receiver calls it.
type downlink struct {
	link    *link
	body    *body
	journal *Journal
	sound   Sound
	stamped uint32 // the largest timestamp so far
}

// receive takes a binary message, as the network task of the firmware does.
func (d *downlink) receive(now time.Time, data []byte) {
	if len(data) > maxBinary {
		d.journal.violate(now, RuleTooLong, "binary message of %d bytes, at most %d", len(data), maxBinary)
	}
	if d.sound.OnFrame != nil {
		d.sound.OnFrame(now, data)
	} else {
		d.journal.add(Event{At: now, Kind: KindFrame, Size: len(data)})
	}
	d.journal.count(func(s *Stats) { s.FramesIn++ })
	if !d.unpack(now, data) {
		d.journal.count(func(s *Stats) { s.Dropped++ })
	}
}

// unpack takes the packet out of its frame and plays it. False: it is lost.
func (d *downlink) unpack(now time.Time, data []byte) bool {
	if d.link.hello.Load() == nil {
		d.journal.violate(now, RuleBeforeHello, "a frame before the hello")
		return false
	}
	packet, timestamp, err := frameDown(d.link.protocol, data)
	if err != nil {
		d.journal.violate(now, RuleFraming, "%s", err)
		return false
	}
	d.checkTimestamp(now, timestamp)
	length, ok := d.checkPacket(now, packet)
	return ok && d.play(now, packet, length, timestamp)
}

// checkTimestamp holds the rule of echo cancelling: with it timestamps grow,
// without it they are 0 (4.5). Only framing 2 carries them.
func (d *downlink) checkTimestamp(now time.Time, timestamp uint32) {
	switch {
	case d.link.protocol != 2:
	case !d.sound.AEC && timestamp != 0:
		d.journal.violate(now, RuleTimestamp, "timestamp %d to a device without echo cancelling by the server", timestamp)
	case d.sound.AEC && timestamp <= d.stamped:
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
	agreed := d.link.agreed().packet()
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
		if b.check.isCut() { // what is on its way when the device cuts a reply is no fault
			// The closing frame is judged, not played.
			b.check.silent = d.decoded(now, b.speaker.decodeWith(cmp.Or(b.speaker.outlived, b.speaker.decoder), packet)).silent
		} else {
			d.journal.violate(now, RuleFrameDropped, "a frame met a device that is %s", b.state)
		}
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
	if sound.err != nil {
		d.journal.violate(now, RulePacket, "%s", sound.err)
	}
	return sound
}

// Lengths of the binary headers (2.4).
const (
	header2 = 16
	header3 = 4
)

// frameUp puts the header of the device's framing version before an Opus packet.
func frameUp(protocol int, timestamp uint32, packet []byte) []byte {
	switch protocol {
	case 2:
		b := make([]byte, header2, header2+len(packet))
		binary.BigEndian.PutUint16(b[0:], 2)
		binary.BigEndian.PutUint32(b[8:], timestamp)
		binary.BigEndian.PutUint32(b[12:], uint32(len(packet)))
		return append(b, packet...)
	case 3:
		b := make([]byte, header3, header3+len(packet))
		binary.BigEndian.PutUint16(b[2:], uint16(len(packet)))
		return append(b, packet...)
	default:
		return packet
	}
}

// frameDown takes the header off a binary message. The error says which field lies.
func frameDown(protocol int, data []byte) ([]byte, uint32, error) {
	switch protocol {
	case 2:
		if len(data) < header2 {
			return nil, 0, fmt.Errorf("framing 2 needs a header of %d bytes, got %d", header2, len(data))
		}
		if v := binary.BigEndian.Uint16(data); v != 2 {
			return nil, 0, fmt.Errorf("framing 2 header says version %d", v)
		}
		if t := binary.BigEndian.Uint16(data[2:]); t != 0 {
			return nil, 0, fmt.Errorf("framing 2 header says type %d", t)
		}
		size := binary.BigEndian.Uint32(data[12:])
		if int64(size) != int64(len(data)-header2) {
			return nil, 0, fmt.Errorf("framing 2 header says %d bytes, %d follow", size, len(data)-header2)
		}
		return data[header2:], binary.BigEndian.Uint32(data[8:]), nil
	case 3:
		if len(data) < header3 {
			return nil, 0, fmt.Errorf("framing 3 needs a header of %d bytes, got %d", header3, len(data))
		}
		if data[0] != 0 {
			return nil, 0, fmt.Errorf("framing 3 header says type %d", data[0])
		}
		if size := int(binary.BigEndian.Uint16(data[2:])); size != len(data)-header3 {
			return nil, 0, fmt.Errorf("framing 3 header says %d bytes, %d follow", size, len(data)-header3)
		}
		return data[header3:], 0, nil
	default:
		return data, 0, nil
	}
}
