package audio

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// coders are bit rates and sampling rates at which each of Opus's coders is used.
var coders = map[string]struct{ rate, bitrate int }{
	"SILK": {16000, 16000}, "hybrid": {48000, 28000}, "CELT": {48000, 96000}, "CELT big": {48000, 120000},
}

// coderOf is the coder of a packet.
func coderOf(packet []byte) string {
	switch config := packet[0] >> 3; {
	case config < 12:
		return "SILK"
	case config < 16:
		return "hybrid"
	default:
		return "CELT"
	}
}

// shortPackets encodes sound as packets of that length and bit rate.
func shortPackets(t *testing.T, rate int, frame time.Duration, bitrate int, pcm []int16) [][]byte {
	t.Helper()
	e := newVoiceEncoder(t, rate, bitrate)
	n := Format{rate, frame}.Samples()
	buf := make([]byte, 4000)
	var packets [][]byte
	for ; len(pcm) >= n; pcm = pcm[n:] {
		size, err := e.Encode(pcm[:n], buf)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, bytes.Clone(buf[:size]))
	}
	return packets
}

// decodePackets is what a device at 24 kHz hears.
func decodePackets(t *testing.T, packets [][]byte) []int16 {
	t.Helper()
	d, pcm := newTestDecoder(t, 24000), make([]int16, MaxFrameSamples(24000))
	var got []int16
	for _, p := range packets {
		n, err := d.Decode(p, pcm)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, pcm[:n]...)
	}
	return got
}

// TestMergedPacketsSoundTheSame merges packets of every length that fits and of
// all three coders: libopus must decode the very same samples.
func TestMergedPacketsSoundTheSame(t *testing.T) {
	for name, c := range coders {
		for _, frame := range []time.Duration{10 * ms, 20 * ms, 60 * ms} {
			t.Run(fmt.Sprint(name, " ", frame), func(t *testing.T) {
				packets := shortPackets(t, c.rate, frame, c.bitrate, speechLike(c.rate, 3*c.rate))
				r := NewRepacketizer(60 * ms)
				var merged [][]byte
				var alone [][]byte // the packets that went in
				for _, p := range packets {
					if err := r.Add(p); err != nil {
						if !errors.Is(err, ErrRepacket) {
							t.Fatal(err)
						}
						alone = alone[:len(alone)-int(r.Waiting()/frame)] // a coder that changes its mind
						r.Clear()
						continue
					}
					alone = append(alone, p)
					if r.Full() {
						out := r.Take(nil)
						if d, err := PacketDuration(out); err != nil || d != 60*ms || len(out) > MaxPacket {
							t.Fatalf("a merged packet of %v, %d bytes, %v", d, len(out), err)
						}
						merged = append(merged, out)
					}
				}
				alone = alone[:len(alone)-int(r.Waiting()/frame)]
				if last := alone[len(alone)-1]; len(merged) < 30 || !strings.HasPrefix(name, coderOf(last)) && frame != 60*ms {
					t.Fatalf("only %d packets, of %s: the test proves little", len(merged), coderOf(last))
				}
				if got, want := decodePackets(t, merged), decodePackets(t, alone); !equal16(got, want) {
					t.Errorf("%d samples, want the %d of the short packets", len(got), len(want))
				}
			})
		}
	}
}

func equal16(a, b []int16) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestPaddedPacketsFadeOut ends a tone after 20 or 40 ms of a packet: the rest
// falls to silence, without a click, by whatever coder.
func TestPaddedPacketsFadeOut(t *testing.T) {
	for name, c := range coders {
		for _, whole := range []int{1, 2} {
			packets := shortPackets(t, c.rate, 20*ms, c.bitrate, speechLike(c.rate, c.rate/50*(30+whole)))
			r := NewRepacketizer(60 * ms)
			var merged [][]byte
			for _, p := range packets {
				if err := r.Add(p); err != nil {
					t.Fatal(err)
				}
				if r.Full() {
					merged = append(merged, r.Take(nil))
				}
			}
			if !r.Pad() || !r.Full() {
				t.Fatalf("%s: %v is not padded", name, r.Waiting())
			}
			merged = append(merged, r.Take(nil))
			got, short := decodePackets(t, merged), decodePackets(t, packets)
			if len(got) != len(merged)*1440 || !equal16(got[:len(short)], short) {
				t.Errorf("%s: what was there has changed", name)
			}
			tail := got[len(short)-1:]
			if step, own := largestStep(tail), largestStep(short); step > own {
				t.Errorf("%s, %d of 3: a step of %d, in the sound itself %d", name, whole, step, own)
			}
			if end, before := rms(tail[len(tail)-120:]), rms(short[len(short)-480:]); end > before*0.6 {
				t.Errorf("%s, %d of 3: loudness %.0f at the end after %.0f", name, whole, end, before)
			}
		}
	}
	r := NewRepacketizer(60 * ms)
	if r.Pad() {
		t.Error("nothing was padded")
	}
	if err := r.Add([]byte{10 << 3, 1}); err != nil || r.Pad() {
		t.Errorf("40 ms cannot be padded by 40, %v", err)
	}
}

// TestMergesPacketsOfSeveralFrames: all four codes can come in.
func TestMergesPacketsOfSeveralFrames(t *testing.T) {
	const toc = 9 << 3 // SILK, 20 ms
	for name, c := range map[string]struct {
		in   [][]byte
		want []byte
	}{
		"three of one size":     {[][]byte{{toc, 1, 2}, {toc, 3, 4}, {toc, 5, 6}}, []byte{toc | 3, 3, 1, 2, 3, 4, 5, 6}},
		"three sizes":           {[][]byte{{toc, 1}, {toc, 2, 3}, {toc}}, []byte{toc | 3, 0x83, 1, 2, 1, 2, 3}},
		"two equal and one":     {[][]byte{{toc | 1, 1, 2}, {toc, 3}}, []byte{toc | 3, 3, 1, 2, 3}},
		"one and two different": {[][]byte{{toc, 9}, {toc | 2, 1, 5, 6, 7}}, []byte{toc | 3, 0x83, 1, 1, 9, 5, 6, 7}},
		"padded":                {[][]byte{{toc | 3, 0x43, 4, 7, 8, 9, 0, 0, 0, 0}}, []byte{toc | 3, 3, 7, 8, 9}},
		"a long one": {
			[][]byte{append([]byte{toc}, make([]byte, 300)...), {toc, 1}, {toc, 2}},
			append(append([]byte{toc | 3, 0x83, 252, 12, 1}, make([]byte, 300)...), 1, 2),
		},
		"one of 60 ms": {[][]byte{{11 << 3, 1, 2}}, []byte{11 << 3, 1, 2}},
	} {
		r := NewRepacketizer(60 * ms)
		for _, p := range c.in {
			if r.Full() {
				t.Errorf("%s: full too early", name)
			}
			if err := r.Add(p); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !r.Full() {
			t.Errorf("%s: not full", name)
		}
		if got := r.Take([]byte("x")); !bytes.Equal(got, append([]byte("x"), c.want...)) {
			t.Errorf("%s: %x, want %x", name, got, c.want)
		}
		if r.Waiting() != 0 || r.Full() || len(r.Take(nil)) != 0 {
			t.Errorf("%s: something is left", name)
		}
	}
}

func TestRepacketizerRefuses(t *testing.T) {
	const toc = 9 << 3
	for name, p := range map[string][]byte{
		"nothing":          nil,
		"another kind":     {5 << 3, 1},
		"40 ms more":       {10 << 3, 1},
		"60 ms more":       {11 << 3, 1},
		"stereo":           {toc | 4, 1},
		"odd halves":       {toc | 1, 1, 2, 3},
		"no size":          {toc | 2},
		"half a size":      {toc | 2, 255},
		"size too large":   {toc | 2, 9, 1},
		"no count":         {toc | 3},
		"no frames":        {toc | 3, 0},
		"too many":         {toc | 3, 7},
		"uneven":           {toc | 3, 2, 1, 2, 3},
		"padding is all":   {toc | 3, 0x41, 9, 1},
		"padding cut":      {toc | 3, 0x41, 255},
		"sizes cut":        {toc | 3, 0x82},
		"size beyond":      {toc | 3, 0x82, 9, 1},
		"frame too large":  append([]byte{toc}, make([]byte, 1276)...),
		"packet too large": append([]byte{toc}, make([]byte, 1275)...),
	} {
		r := NewRepacketizer(60 * ms)
		if err := r.Add(append([]byte{toc}, bytes.Repeat([]byte{1}, 250)...)); err != nil {
			t.Fatal(err)
		}
		before := r.Waiting()
		if err := r.Add(p); !errors.Is(err, ErrRepacket) {
			t.Errorf("%s: %v", name, err)
		}
		if r.Waiting() != before {
			t.Errorf("%s: something was taken", name)
		}
	}
}

// FuzzRepacketizer gives it strangers' packets. Whatever it takes, libopus must
// be able to decode as long as is promised, if it could decode what went in.
func FuzzRepacketizer(f *testing.F) {
	f.Add([]byte{9 << 3, 1, 2}, []byte{9 << 3, 3})
	f.Add([]byte{9<<3 | 3, 0xc3, 1, 1, 1, 9, 9, 9, 0}, []byte{9<<3 | 2, 1, 1, 1})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		d, pcm := newTestDecoder(t, 24000), make([]int16, MaxFrameSamples(24000))
		r := NewRepacketizer(60 * ms)
		fine := true
		for range 3 {
			for _, p := range [][]byte{a, b} {
				before := r.Waiting()
				if r.Add(p) != nil {
					if r.Waiting() != before {
						t.Fatal("a refused packet was taken")
					}
					continue
				}
				_, err := d.Decode(p, pcm)
				fine = fine && err == nil
				if !r.Full() {
					continue
				}
				out := r.Take(nil)
				if length, err := PacketDuration(out); err != nil || length != 60*ms || len(out) > MaxPacket {
					t.Fatalf("%x: %v, %v", out, length, err)
				}
				if n, err := d.Decode(out, pcm); fine && (err != nil || n != 1440) {
					t.Fatalf("%x: %d samples, %v", out, n, err)
				}
			}
		}
	})
}

func TestRepacketizerDoesNotAllocate(t *testing.T) {
	r := NewRepacketizer(60 * ms)
	packet, out := append([]byte{9 << 3}, make([]byte, 70)...), make([]byte, 0, MaxPacket)
	merge := func() {
		for range 3 {
			if err := r.Add(packet); err != nil {
				t.Fatal(err)
			}
		}
		out = r.Take(out[:0])
	}
	merge()
	if n := testing.AllocsPerRun(100, merge); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
