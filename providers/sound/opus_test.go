package sound

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
)

// ear decodes packets as a device does.
type ear struct {
	*testing.T
	decoder *audio.Decoder
}

func newEar(t *testing.T) *ear {
	t.Helper()
	d, err := audio.NewDecoder(24000)
	if err != nil {
		t.Fatal(err)
	}
	return &ear{t, d}
}

func (e *ear) hear(packets [][]byte) []int16 {
	e.Helper()
	pcm := make([]int16, audio.MaxFrameSamples(24000))
	var all []int16
	for _, p := range packets {
		n, err := e.decoder.Decode(p, pcm)
		if err != nil {
			e.Errorf("packet %x: %v", p, err)
		}
		all = append(all, pcm[:n]...)
	}
	return all
}

// oggOpus puts packets into an Ogg stream, a few on each page.
func oggOpus(packets [][]byte, channels byte, preSkip uint16) []byte {
	head := append([]byte("OpusHead\x01"), channels)
	head = binary.LittleEndian.AppendUint16(head, preSkip)
	head = append(head, 0x80, 0xbb, 0, 0, 0, 0, 0)
	var out []byte
	page := func(packets ...[]byte) {
		h := make([]byte, 27)
		copy(h, "OggS")
		var body []byte
		for _, p := range packets {
			for n := len(p); ; n -= 255 {
				h = append(h, byte(min(n, 255)))
				if n < 255 {
					break
				}
			}
			body = append(body, p...)
		}
		h[26] = byte(len(h) - 27)
		out = append(append(out, h...), body...)
	}
	page(head)
	page([]byte("OpusTags"))
	for len(packets) > 0 {
		n := min(3, len(packets))
		page(packets[:n]...)
		packets = packets[n:]
	}
	return out
}

// sung encodes a rising tone as packets of that length.
func sung(t *testing.T, rate int, frame time.Duration, seconds float64) [][]byte {
	t.Helper()
	f := audio.Format{Rate: rate, Frame: frame}
	e, err := audio.NewEncoder(f)
	if err != nil {
		t.Fatal(err)
	}
	buf, pcm := make([]byte, audio.MaxPacket), make([]int16, f.Samples())
	var packets [][]byte
	phase := 0.0
	for range int(seconds / frame.Seconds()) {
		for i := range pcm {
			phase += 2 * math.Pi * (300 + 200*float64(len(packets))*frame.Seconds()) / float64(rate)
			pcm[i] = int16(9000*math.Sin(phase) + 3000*math.Sin(2*phase))
		}
		n, err := e.Encode(pcm, buf)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, bytes.Clone(buf[:n]))
	}
	return packets
}

// taken is what a stream gives.
type taken struct {
	packets [][]byte
	pcm     []int16 // after the packets
	heard   []int16 // all of it, by a device
}

func take(t *testing.T, stream []byte) taken {
	t.Helper()
	var got taken
	ear := newEar(t)
	p := &Player{yield: func(s providers.Sound, err error) bool {
		switch {
		case err != nil:
			t.Error(err)
		case len(s.Packets) > 0 && len(got.pcm) > 0:
			t.Error("a packet after PCM")
		case len(s.Packets) > 0:
			got.packets = append(got.packets, s.Packets...)
			got.heard = append(got.heard, ear.hear(s.Packets)...)
		case s.Rate != 24000:
			t.Errorf("PCM of %d Hz", s.Rate)
		default:
			got.pcm = append(got.pcm, s.PCM...)
			got.heard = append(got.heard, s.PCM...)
		}
		return true
	}}
	if err := playOpus(bytes.NewReader(stream), p); err != nil {
		t.Fatal(err)
	}
	for _, packet := range got.packets {
		if d, err := audio.PacketDuration(packet); err != nil || d != 60*time.Millisecond {
			t.Errorf("a packet of %v, %v", d, err)
		}
	}
	return got
}

// TestOpusIsPassedThrough: what a device hears is what the stream's own decoder
// gives, and nothing is decoded on the way.
func TestOpusIsPassedThrough(t *testing.T) {
	for name, c := range map[string]struct {
		rate    int
		frame   time.Duration
		seconds float64
	}{
		"20 ms, all used":     {24000, 20 * time.Millisecond, 1.2},
		"20 ms, one left":     {24000, 20 * time.Millisecond, 1.22},
		"20 ms, two left":     {24000, 20 * time.Millisecond, 1.24},
		"20 ms of 48 kHz":     {48000, 20 * time.Millisecond, 1.2},
		"60 ms":               {16000, 60 * time.Millisecond, 1.2},
		"10 ms, five left":    {16000, 10 * time.Millisecond, 0.65},
		"less than a packet":  {24000, 20 * time.Millisecond, 0.04},
		"a packet of 20 ms":   {24000, 20 * time.Millisecond, 0.02},
		"20 ms, a long reply": {16000, 20 * time.Millisecond, 5},
	} {
		t.Run(name, func(t *testing.T) {
			short := sung(t, c.rate, c.frame, c.seconds+0.001)
			got := take(t, oggOpus(short, 1, 312))
			want := newEar(t).hear(short)
			if whole := (len(want) + 1439) / 1440; len(got.packets) != whole || len(got.pcm) != 0 {
				t.Fatalf("%d packets of %d, and %d samples", len(got.packets), whole, len(got.pcm))
			}
			if !slices.Equal(got.heard[:len(want)], want) {
				t.Errorf("a device hears something else")
			}
		})
	}
}

// difference is the energy of the difference, in parts of the first's.
func difference(a, b []int16) float64 {
	sum, all := 0.0, 1.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum, all = sum+d*d, all+float64(a[i])*float64(a[i])
	}
	return sum / all
}

// TestOpusThatChangesIsDecoded: from the packet on that cannot be merged, the
// sound goes on as PCM, without a gap or a jump.
func TestOpusThatChangesIsDecoded(t *testing.T) {
	other := sung(t, 16000, 20*time.Millisecond, 0.5) // another band, so another kind of packet
	for _, at := range []int{0, 1, 2, 3, 4, 30} {
		short := sung(t, 24000, 20*time.Millisecond, 1)[:at]
		all := append(short[:at:at], other...)
		got := take(t, oggOpus(all, 1, 0))
		want := newEar(t).hear(all)
		packets := at / 3
		if at%3 == 0 { // a change between two packets of 60 ms is none
			packets += (len(other) + 2) / 3
		}
		if len(got.packets) != packets || len(got.heard) < len(want) || len(got.heard) > len(want)+960 {
			t.Fatalf("change at %d: %d packets, want %d; %d samples, want %d", at, len(got.packets), packets, len(got.heard), len(want))
		}
		if d := difference(want, got.heard); d > 0.02 {
			t.Errorf("change at %d: a device hears something else: %.3f of its energy", at, d)
		}
	}
}

// TestNewestPacketsAreRemembered: what a decoder that begins within the stream
// hears is the last packets, each as it was.
func TestNewestPacketsAreRemembered(t *testing.T) {
	o := &opusPlayer{merge: audio.NewRepacketizer(audio.Reply.Frame)}
	packets := sung(t, 24000, 20*time.Millisecond, 0.4)
	for _, p := range packets {
		o.remember(p, 20*time.Millisecond)
	}
	newest := packets[len(packets)-len(o.rolled):]
	if len(newest) < 4 || !slices.EqualFunc(o.rolled, newest, bytes.Equal) {
		t.Errorf("%x, want %x", o.rolled, newest)
	}
}

func TestOpusUnplayableDecoded(t *testing.T) {
	for name, packets := range map[string][][]byte{
		"40 ms":  sung(t, 24000, 40*time.Millisecond, 0.61),
		"100 ms": sung(t, 24000, 100*time.Millisecond, 0.61),
		"120 ms": sung(t, 24000, 120*time.Millisecond, 0.61),
	} {
		got := take(t, oggOpus(packets, 1, 0))
		want := newEar(t).hear(packets)
		if len(got.packets) != 0 || difference(want, got.pcm) > 0.02 || len(want) != len(got.pcm) {
			t.Errorf("%s: %d packets, %d samples of %d", name, len(got.packets), len(got.pcm), len(want))
		}
	}
}

// TestPreSkipLeavesOutWholePackets: of more than a packet that is to be left
// out, the packets are; decoded sound is trimmed to the sample.
func TestPreSkipLeavesOutWholePackets(t *testing.T) {
	short := sung(t, 24000, 20*time.Millisecond, 0.601)
	got := take(t, oggOpus(short, 1, 960*2+312))
	if len(got.packets) != (len(short)-2+2)/3 {
		t.Errorf("%d packets of %d", len(got.packets), len(short))
	}
	long := sung(t, 24000, 40*time.Millisecond, 0.601)
	got = take(t, oggOpus(long, 1, 960*2+312))
	if want := newEar(t).hear(long)[960+156:]; len(got.pcm) != len(want) || difference(want, got.pcm) > 0.02 {
		t.Errorf("%d samples, want %d", len(got.pcm), len(want))
	}
}

func TestBrokenOpusPacket(t *testing.T) {
	for _, bad := range [][]byte{{3}, {9<<3 | 1, 1, 2, 3}} {
		packets := append(sung(t, 24000, 20*time.Millisecond, 0.2), bad)
		p := &Player{yield: func(providers.Sound, error) bool { return true }}
		if err := playOpus(bytes.NewReader(oggOpus(packets, 1, 0)), p); err == nil || !p.heard {
			t.Errorf("%x: %v, heard %v", bad, err, p.heard)
		}
	}
}

func TestLeavingTheLoopEndsOpus(t *testing.T) {
	calls := 0
	p := &Player{yield: func(providers.Sound, error) bool { calls++; return false }}
	if err := playOpus(bytes.NewReader(oggOpus(sung(t, 24000, 20*time.Millisecond, 1), 1, 0)), p); err != nil || calls != 1 || !p.left {
		t.Errorf("%d calls, left %v, %v", calls, p.left, err)
	}
}

// TestOpusStreamsInARow: some services begin a stream for each part of a sentence.
func TestOpusStreamsInARow(t *testing.T) {
	short := sung(t, 24000, 20*time.Millisecond, 1.2)
	first := oggOpus(short[:30], 1, 312)
	second := oggOpus(short[30:60], 1, 312)
	for name, serial := range map[string]string{"of another number": "\x07\x00\x00\x00", "of the same": "\x00\x00\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			pages := bytes.SplitAfter(second, []byte("OggS\x00"))[1:]
			var again []byte
			for i, page := range pages {
				page = slices.Clone(page)
				copy(page[9:], serial)
				if i == 0 {
					page[0] = 2 // it begins
				}
				if again = append(again, page...); i == 0 {
					again = append([]byte("OggS\x00"), again...)
				}
			}
			got := take(t, slices.Concat(first, again))
			if want := newEar(t).hear(short[:60]); len(got.packets) != 20 || !slices.Equal(got.heard[:len(want)], want) {
				t.Errorf("%d packets, or a device hears something else", len(got.packets))
			}
		})
	}
}
