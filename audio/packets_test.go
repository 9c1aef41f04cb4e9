package audio

import (
	"bytes"
	"testing"
	"time"
)

// toned encodes so many frames of a tone, as devices do.
func toned(tb testing.TB, f Format, frames int) (packets [][]byte) {
	tb.Helper()
	enc := newVoiceEncoder(tb, f.Rate, 24000)
	pcm, buf := make([]int16, f.Samples()), make([]byte, MaxPacket)
	for n := range frames {
		for i := range pcm {
			pcm[i] = int16((n*len(pcm)+i)%40*500 - 10000)
		}
		size, err := enc.Encode(pcm, buf)
		if err != nil {
			tb.Fatal(err)
		}
		packets = append(packets, bytes.Clone(buf[:size]))
	}
	return packets
}

// TestPackets: packets come back as they were added, and lengths are those that a device plays.
func TestPackets(t *testing.T) {
	var p Packets
	if p.Lost() || p.Add(nil) || p.Length() != 0 {
		t.Error("nothing became something")
	}
	added := toned(t, Recognition, 5)
	for _, packet := range added {
		if !p.Add(packet) {
			t.Fatal("a packet was refused")
		}
	}
	var got [][]byte
	for packet, length := range p.All() {
		if length != Recognition.Frame {
			t.Errorf("a packet of %v", length)
		}
		got = append(got, bytes.Clone(packet))
	}
	if len(got) != 5 || !bytes.Equal(bytes.Join(got, nil), bytes.Join(added, nil)) || p.Length() != 300*time.Millisecond {
		t.Errorf("%d packets, %v", len(got), p.Length())
	}
	p.Lost()
	p.Add([]byte{added[0][0] &^ 0x18}) // a pause that says it is short lasts as long as the packet before
	if p.Length() != 420*time.Millisecond {
		t.Errorf("with a lost packet and a pause: %v", p.Length())
	}
	dec, err := NewDecoder(16000)
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	for packet := range p.All() {
		n, err := dec.Decode(packet, make([]int16, MaxFrameSamples(16000)))
		if err != nil {
			t.Error(err)
		}
		samples += n
	}
	if samples != 16000*420/1000 {
		t.Errorf("%d samples", samples)
	}
	var other Packets
	other.Append(&p)
	other.Append(nil)
	if other.Length() != p.Length() || other.Bytes() != p.Bytes() {
		t.Error("a copy is another")
	}
	other.KeepLast(150 * time.Millisecond)
	if other.Length() != 180*time.Millisecond {
		t.Errorf("the last 150 ms are %v", other.Length())
	}
	p.Cut(250 * time.Millisecond)
	if p.Length() != 250*time.Millisecond || len(p.sizes) != 5 {
		t.Errorf("cut: %v of %d packets", p.Length(), len(p.sizes))
	}
	p.Cut(0)
	if p.Length() != 0 || p.Bytes() != 0 {
		t.Errorf("cut to nothing: %v", p.Length())
	}
}

// FuzzPackets: whatever comes, lengths are right and memory is bounded.
func FuzzPackets(f *testing.F) {
	f.Add([]byte{0x58, 1, 2, 3}, []byte{0x5b, 0x83, 1}, 100)
	f.Add([]byte{0xff, 0x30}, []byte{0}, 60)
	f.Fuzz(func(t *testing.T, a, b []byte, cut int) {
		var p Packets
		for range 3 {
			p.Add(a)
			p.Lost()
			p.Add(b)
		}
		var sum time.Duration
		for packet, length := range p.All() {
			if len(packet) == 0 || length <= 0 || length > maxPacketDuration {
				t.Errorf("a packet of %d bytes, %v", len(packet), length)
			}
			sum += length
		}
		if sum != p.Length() || p.Bytes() > MaxPackets {
			t.Errorf("%v, want %v", p.Length(), sum)
		}
		if at := time.Duration(cut) * time.Microsecond; at >= 0 {
			p.Cut(at)
			if p.Length() != min(at, sum) {
				t.Errorf("cut at %v: %v of %v", at, p.Length(), sum)
			}
			p.KeepLast(at)
		}
	})
}

// TestPacketsAreBounded: nothing is taken beyond the bound.
func TestPacketsAreBounded(t *testing.T) {
	var p Packets
	packet := append([]byte{0x58}, make([]byte, 1200)...)
	for p.Add(packet) {
		if p.Bytes() > MaxPackets {
			t.Fatal(p.Bytes())
		}
	}
	for range 1000 {
		p.Lost()
	}
	if p.Bytes() > MaxPackets || p.Length() < time.Second {
		t.Errorf("%d bytes, %v", p.Bytes(), p.Length())
	}
}
