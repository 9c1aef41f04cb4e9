package devicetest

import (
	"slices"
	"time"

	"xiaozhi/audio"
)

// maxPacketSamples is the longest Opus packet, 120 ms at 48 kHz.
const maxPacketSamples = 5760

// stereoBit of the first byte of an Opus packet (RFC 6716, 3.1).
const stereoBit = 0x04

// quiet is the mean size of a sample (of 32768) under which sound counts as silence.
const quiet = 64

// onBinary judges a frame by the device's present state, as the network task of the firmware does.
func (d *Device) onBinary(now time.Time, data []byte) {
	if len(data) > maxBinary {
		d.journal.violate(now, RuleTooLong, "binary message of %d bytes, at most %d", len(data), maxBinary)
	}
	if d.opt.OnFrame != nil {
		d.opt.OnFrame(now)
	} else {
		d.journal.add(Event{At: now, Kind: KindFrame, Size: len(data)})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.FramesIn++
	if !d.hasHello {
		d.journal.violate(now, RuleBeforeHello, "a frame before the hello")
		d.stats.Dropped++
		return
	}
	packet, timestamp, err := frameDown(d.opt.Protocol, data)
	if err != nil {
		d.journal.violate(now, RuleFraming, "%s", err)
		d.stats.Dropped++
		return
	}
	d.checkTimestamp(now, timestamp)
	length, ok := d.checkPacket(now, packet)
	if !ok {
		d.stats.Dropped++
		return
	}
	reply := d.turn.frame(now)
	if !d.play(now, packet, length, reply, timestamp) {
		d.stats.Dropped++
		if reply != nil {
			reply.Dropped++
		}
	}
}

// checkTimestamp holds the rule of echo cancelling: with it timestamps grow,
// without it they are 0 (4.5). Only framing 2 carries them.
func (d *Device) checkTimestamp(now time.Time, timestamp uint32) {
	switch {
	case d.opt.Protocol != 2:
	case !d.opt.AEC && timestamp != 0:
		d.journal.violate(now, RuleTimestamp, "timestamp %d to a device without echo cancelling by the server", timestamp)
	case d.opt.AEC && timestamp <= d.stamped:
		d.journal.violate(now, RuleTimestamp, "timestamp %d after %d: must grow", timestamp, d.stamped)
	}
	d.stamped = max(d.stamped, timestamp)
}

// checkPacket holds what the decoder needs (4.2). False: the packet cannot be played.
func (d *Device) checkPacket(now time.Time, packet []byte) (time.Duration, bool) {
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
	if length != d.length {
		d.journal.violate(now, RulePacketDuration, "a packet of %s, the hello said %s", length, d.length)
	}
	return length, length <= d.length || d.traits.noConnecting
}

// play puts a packet into the playback queue if the state allows it.
func (d *Device) play(now time.Time, packet []byte, length time.Duration, reply *Reply, timestamp uint32) bool {
	if d.state != Speaking && !d.traits.anyState {
		if d.turn.cutAt.IsZero() { // what is on its way when the device cuts a reply is nobody's fault
			d.journal.violate(now, RuleFrameDropped, "a frame met a device that is %s", d.state)
			return false
		}
		decoder := d.decoder
		if d.outlived != nil {
			decoder = d.outlived
		}
		_, d.turn.silent = d.decode(now, decoder, packet) // the closing frame is judged, not played
		return false
	}
	pcm, silent := d.decode(now, d.decoder, packet)
	if pcm == nil && !d.opt.NoDecode {
		return false
	}
	if reply == nil {
		pcm = nil // nobody will ask for it
	}
	sound := d.overhear(packet)
	ends := d.player.ends
	d.player.trim(now.Add(-d.opt.memory()))
	from, kept := d.player.accept(now, length, pcm, reply)
	if !from.IsZero() {
		d.player.label(timestamp, sound)
	}
	if !kept {
		d.journal.violate(now, RuleQueueFull, "%d packets wait already", d.player.limit)
	}
	if !from.IsZero() {
		d.turn.placed(now, from, ends, length, silent)
	}
	if reply != nil {
		d.stats.Underruns += reply.Underruns - reply.counted
		reply.counted = reply.Underruns
	}
	return kept
}

// decode gives a packet's sound, nil if there is none, and whether it ends in silence.
func (d *Device) decode(now time.Time, decoder *audio.Decoder, packet []byte) ([]int16, bool) {
	if d.opt.NoDecode {
		return nil, true
	}
	if d.scratch == nil {
		d.scratch = make([]int16, maxPacketSamples)
	}
	n, err := decoder.Decode(packet, d.scratch)
	if err != nil || n == 0 {
		d.journal.violate(now, RulePacket, "%d samples, %v", n, err)
		return nil, false
	}
	pcm := slices.Clone(d.scratch[:n])
	// The first half may still hold the end of the sound before it.
	return pcm, isQuiet(pcm[n/2:])
}

// overhear is a packet's sound for the microphone of a device with a Room.
func (d *Device) overhear(packet []byte) []int16 {
	if d.ear == nil {
		return nil
	}
	n, err := d.ear.Decode(packet, d.scratch)
	if err != nil {
		return nil // decode has told
	}
	return slices.Clone(d.scratch[:n])
}

func isQuiet(pcm []int16) bool {
	sum := 0
	for _, s := range pcm {
		if s < 0 {
			sum -= int(s)
		} else {
			sum += int(s)
		}
	}
	return sum <= quiet*len(pcm)
}
