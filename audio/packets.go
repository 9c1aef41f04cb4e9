package audio

import (
	"iter"
	"slices"
	"time"
)

// MaxPackets is how many bytes [Packets] takes: about six minutes of a reply, eight of a microphone.
const MaxPackets = 1 << 20

// Packets holds Opus packets one after the other, as they came or went. Its zero value is empty. It is for one
// goroutine at a time.
type Packets struct {
	data   []byte
	sizes  []uint16 // of the packets in data
	length time.Duration
	end    time.Duration // what is heard of length, if Cut has cut within the last packet; 0: all
	pause  [2]byte       // a packet without sound that is as long as the last one with sound
	paused int           // bytes of pause
	span   time.Duration // of pause
}

// Add appends a copy of a packet. A pause of one or two bytes counts as [Decoder.Decode] counts it. What is no
// packet, and what comes after [MaxPackets] bytes, is left out: false.
func (p *Packets) Add(packet []byte) bool {
	length, err := PacketDuration(packet)
	if err != nil || len(p.data)+len(packet) > MaxPackets || len(packet) > maxOpusFrame*maxOpusFrames {
		return false
	}
	if len(packet) > dtxBytes {
		p.remember(packet, length)
	} else if length < p.span {
		return p.Lost()
	}
	p.push(packet, length)
	return true
}

// Lost appends silence for a packet that never came, as long as the last one that was more than a pause. Before
// there was one, nothing is appended: false.
func (p *Packets) Lost() bool {
	if p.paused == 0 || len(p.data)+p.paused > MaxPackets {
		return false
	}
	p.push(p.pause[:p.paused], p.span)
	return true
}

// remember makes the pause that is as long as a packet: its frames, of no bytes each (RFC 6716, section 3.2).
func (p *Packets) remember(packet []byte, length time.Duration) {
	p.span = length
	if frames := length / frameDuration(packet[0]>>3); frames > 1 {
		p.pause, p.paused = [2]byte{packet[0] | tocCode, byte(frames)}, 2
		return
	}
	p.pause, p.paused = [2]byte{packet[0] &^ tocCode}, 1
}

func (p *Packets) push(packet []byte, length time.Duration) {
	p.data = append(p.data, packet...)
	p.sizes = append(p.sizes, uint16(len(packet)))
	p.length, p.end = p.length+length, 0
}

// Append appends copies of all packets of another run, as far as there is room. nil is none.
func (p *Packets) Append(other *Packets) {
	if other == nil {
		return
	}
	for packet := range other.All() {
		if !p.Add(packet) {
			return
		}
	}
}

// Length returns the time that the packets play.
func (p *Packets) Length() time.Duration {
	if p.end > 0 {
		return p.end
	}
	return p.length
}

// Bytes is the size of the packets.
func (p *Packets) Bytes() int { return len(p.data) }

// All lists the packets, each with its length. They are good until the next change.
func (p *Packets) All() iter.Seq2[[]byte, time.Duration] {
	return func(yield func([]byte, time.Duration) bool) {
		data := p.data
		for _, size := range p.sizes {
			packet := data[:size:size]
			data = data[size:]
			length, _ := PacketDuration(packet) // Add has looked at it
			if !yield(packet, length) {
				return
			}
		}
	}
}

// Cut drops what plays after a length.
func (p *Packets) Cut(length time.Duration) {
	if length >= p.Length() {
		return
	}
	var n, bytes int
	var kept time.Duration
	for packet, d := range p.All() {
		if kept >= length {
			break
		}
		n, bytes, kept = n+1, bytes+len(packet), kept+d
	}
	p.sizes, p.data, p.length, p.end = p.sizes[:n], p.data[:bytes], kept, max(length, 0)
	if p.end == kept {
		p.end = 0
	}
}

// KeepLast drops packets from the beginning, so that at least the last length is kept.
func (p *Packets) KeepLast(length time.Duration) {
	var n, bytes int
	left := p.length
	for packet, d := range p.All() {
		if left-d < length {
			break
		}
		n, bytes, left = n+1, bytes+len(packet), left-d
	}
	p.data = slices.Delete(p.data, 0, bytes)
	p.sizes = slices.Delete(p.sizes, 0, n)
	p.length = left
}
