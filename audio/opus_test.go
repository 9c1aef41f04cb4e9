package audio

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"xiaozhi/audio/internal/dsp"
)

func newTestEncoder(tb testing.TB, f Format) *Encoder {
	tb.Helper()
	e, err := NewEncoder(f)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func newTestDecoder(tb testing.TB, rate int) *Decoder {
	tb.Helper()
	d, err := NewDecoder(rate)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// tone is n samples of a sine, beginning at sample from.
func tone(rate int, hz, amplitude float64, from, n int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = dsp.Round(float32(amplitude * math.Sin(2*math.Pi*hz*float64(from+i)/float64(rate))))
	}
	return pcm
}

func rms(pcm []int16) float64 {
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(1, len(pcm))))
}

// encodeVoice gives count packets of a 440 Hz tone as a device makes them: SILK's.
func encodeVoice(tb testing.TB, f Format, count int) [][]byte {
	tb.Helper()
	e, buf := newVoiceEncoder(tb, f.Rate, 24000), make([]byte, MaxPacket)
	var packets [][]byte
	for i := range count {
		n, err := e.Encode(tone(f.Rate, 440, 10000, i*f.Samples(), f.Samples()), buf)
		if err != nil {
			tb.Fatal(err)
		}
		packets = append(packets, bytes.Clone(buf[:n]))
	}
	return packets
}

// encodeTone gives count packets of a 440 Hz tone.
func encodeTone(tb testing.TB, f Format, count int) [][]byte {
	tb.Helper()
	e := newTestEncoder(tb, f)
	buf := make([]byte, MaxPacket)
	var packets [][]byte
	for i := range count {
		n, err := e.Encode(tone(f.Rate, 440, 10000, i*f.Samples(), f.Samples()), buf)
		if err != nil {
			tb.Fatal(err)
		}
		packets = append(packets, bytes.Clone(buf[:n]))
	}
	return packets
}

func TestEncodeAndDecode(t *testing.T) {
	for _, rate := range []int{8000, 12000, 16000, 24000, 48000} {
		for _, ms := range []int{5, 10, 20, 40, 60, 80, 100, 120} {
			f := Format{Rate: rate, Frame: time.Duration(ms) * time.Millisecond}
			t.Run(fmt.Sprint(f), func(t *testing.T) {
				d := newTestDecoder(t, 16000)
				pcm := make([]int16, MaxFrameSamples(16000))
				var last float64
				for _, p := range encodeTone(t, f, 6) {
					if got, err := PacketDuration(p); err != nil || got != f.Frame {
						t.Fatalf("PacketDuration is %v, %v; want %v", got, err, f.Frame)
					}
					n, err := d.Decode(p, pcm)
					if err != nil || n != 16*ms {
						t.Fatalf("decoded %d samples, %v; want %d", n, err, 16*ms)
					}
					last = rms(pcm[:n])
				}
				if last < 4000 || last > 10000 { // 7071 is exact
					t.Errorf("loudness %.0f after the round trip, want about 7071", last)
				}
			})
		}
	}
}

func TestEncoderRefuses(t *testing.T) {
	for _, f := range []Format{
		{},
		{16000, 0},
		{16000, 30 * time.Millisecond},
		{16000, 2500 * time.Microsecond},
		{16000, 60*time.Millisecond + 1},
		{16000, -60 * time.Millisecond},
		{22050, 60 * time.Millisecond},
		{-1, 60 * time.Millisecond},
	} {
		if _, err := NewEncoder(f); err == nil {
			t.Errorf("NewEncoder(%v) was accepted", f)
		}
	}
	e := newTestEncoder(t, Reply)
	for _, n := range []int{0, 1, 1439, 1441, 2880} {
		if _, err := e.Encode(make([]int16, n), make([]byte, MaxPacket)); err == nil {
			t.Errorf("a frame of %d samples was accepted", n)
		}
	}
	if _, err := e.Encode(make([]int16, 1440), make([]byte, 100, MaxPacket)); err == nil {
		t.Error("a short packet buffer was accepted")
	}
	if n, err := e.Encode(make([]int16, 1440), make([]byte, MaxPacket)); err != nil || n == 0 {
		t.Errorf("after the errors: %d bytes, %v", n, err)
	}
}

func TestSilenceFadesOut(t *testing.T) {
	e, d := newTestEncoder(t, Reply), newTestDecoder(t, Reply.Rate)
	buf, pcm := make([]byte, MaxPacket), make([]int16, MaxFrameSamples(Reply.Rate))
	for i := range 5 {
		n, err := e.Encode(tone(Reply.Rate, 300, 15000, i*Reply.Samples(), Reply.Samples()), buf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Decode(buf[:n], pcm); err != nil {
			t.Fatal(err)
		}
	}
	n, err := e.Silence(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := PacketDuration(buf[:n]); err != nil || got != Reply.Frame {
		t.Errorf("the silent frame lasts %v, %v", got, err)
	}
	n, err = d.Decode(buf[:n], pcm)
	if err != nil || n != Reply.Samples() {
		t.Fatalf("decoded %d samples, %v", n, err)
	}
	if end := rms(pcm[n/2 : n]); end > 300 {
		t.Errorf("the second half of the silent frame has the loudness %.0f", end)
	}
}

// TestSilenceEndsWithoutAClick cuts a tone at its peak. What the device hears
// after it must fall evenly: no step as large as one that the tone itself has.
func TestSilenceEndsWithoutAClick(t *testing.T) {
	e, d := newTestEncoder(t, Reply), newTestDecoder(t, Reply.Rate)
	buf, pcm := make([]byte, MaxPacket), make([]int16, MaxFrameSamples(Reply.Rate))
	var heard []int16
	play := func(n int, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if n, err = d.Decode(buf[:n], pcm); err != nil {
			t.Fatal(err)
		}
		heard = append(heard, pcm[:n]...)
	}
	for i := range 5 { // 204.17 Hz: 12.25 periods in a frame, so the frame ends at a peak
		play(e.Encode(tone(Reply.Rate, 12.25/0.06, 15000, i*Reply.Samples(), Reply.Samples()), buf))
	}
	cut := len(heard)
	play(e.Silence(buf))
	play(e.Silence(buf)) // which knows that it is silent already
	if tone, end := largestStep(heard[cut-1000:cut]), largestStep(heard[cut-1:]); end > tone*3/2 {
		t.Errorf("a step of %d in the end, %d within the tone", end, tone)
	}
	if loud := rms(heard[cut+Reply.Samples():]); loud > 40 {
		t.Errorf("after the end: loudness %.0f", loud)
	}
}

func TestDecoderRefuses(t *testing.T) {
	for _, rate := range []int{0, -1, 22050, 44100} {
		if _, err := NewDecoder(rate); err == nil {
			t.Errorf("NewDecoder(%d) was accepted", rate)
		}
	}
	good := encodeTone(t, Recognition, 1)[0]
	d := newTestDecoder(t, 16000)
	pcm := make([]int16, MaxFrameSamples(16000))
	for name, c := range map[string]struct {
		packet []byte
		pcm    []int16
	}{
		"nil":               {nil, pcm},
		"empty":             {[]byte{}, pcm},
		"no frame count":    {[]byte{3}, pcm},
		"no frames":         {[]byte{3, 0}, pcm},
		"too long":          {[]byte{0x1b, 3}, pcm}, // three times 60 ms
		"sizes disagree":    {[]byte{0x01, 1, 2, 3}, pcm},
		"no buffer":         {good, nil},
		"short buffer":      {good, pcm[:959]}, // its capacity does not count
		"pause, short room": {[]byte{0x18}, pcm[:959]},
	} {
		if n, err := d.Decode(c.packet, c.pcm); err == nil {
			t.Errorf("%s: decoded %d samples", name, n)
		} else if !strings.Contains(err.Error(), "opus") {
			t.Errorf("%s: unclear error %v", name, err)
		}
		if n, err := d.Decode(good, pcm); err != nil || n != 960 {
			t.Errorf("after %s: %d samples, %v", name, n, err)
		}
	}
}

func TestPausesAdvance(t *testing.T) {
	const silk20, silk60 = 0x08, 0x18 // wideband would be 0x48 and 0x58; the band does not matter
	speech60 := encodeVoice(t, Format{16000, 60 * time.Millisecond}, 3)
	speech20 := encodeVoice(t, Format{16000, 20 * time.Millisecond}, 3)
	for name, c := range map[string]struct {
		before [][]byte
		pause  []byte
		want   int
	}{
		"first of all, 60 ms":      {nil, []byte{silk60}, 960},
		"first of all, 20 ms":      {nil, []byte{silk20}, 320},
		"same length":              {speech60, []byte{silk60}, 960},
		"TOC says less":            {speech60, []byte{silk20}, 960},
		"TOC says more":            {speech20, []byte{silk60}, 960},
		"three frames of 20 ms":    {speech60, []byte{silk20 | 3, 3}, 960},
		"two bytes, one frame":     {speech60, []byte{silk60, 0}, 960},
		"two frames of nothing":    {speech20, []byte{silk20 | 1}, 640},
		"after speech, 20 ms":      {speech20, []byte{silk20}, 320},
		"CELT 20 ms after 60 ms":   {speech60, []byte{0x98}, 960},
		"hybrid 10 ms after 20 ms": {speech20, []byte{0x60}, 320},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestDecoder(t, 16000)
			pcm := make([]int16, MaxFrameSamples(16000))
			for _, p := range c.before {
				if _, err := d.Decode(p, pcm); err != nil {
					t.Fatal(err)
				}
			}
			for range 40 { // a pause is no packet length to be remembered
				n, err := d.Decode(c.pause, pcm)
				if err != nil || n != c.want {
					t.Fatalf("a pause of %d samples, %v; want %d", n, err, c.want)
				}
			}
			if loud := rms(pcm[:c.want]); loud > 50 {
				t.Errorf("a long pause has the loudness %.0f", loud)
			}
		})
	}
}

func TestRealDTXStream(t *testing.T) {
	e, d := newVoiceEncoder(t, 16000, 24000), newTestDecoder(t, 16000)
	if err := e.SetDTX(true); err != nil {
		t.Fatal(err)
	}
	buf, pcm := make([]byte, MaxPacket), make([]int16, MaxFrameSamples(16000))
	pauses, samples := 0, 0
	const frames = 120
	for i := range frames {
		frame := tone(16000, 200, 8000, i*960, 960)
		if i%60 >= 10 {
			clear(frame)
		}
		n, err := e.Encode(frame, buf)
		if err != nil {
			t.Fatal(err)
		}
		if n <= 2 {
			pauses++
		}
		if n, err = d.Decode(buf[:n], pcm); err != nil {
			t.Fatal(err)
		}
		samples += n
	}
	if samples != frames*960 {
		t.Errorf("%d samples of %d frames", samples, frames)
	}
	if pauses < 20 {
		t.Errorf("only %d pauses: the test proves nothing", pauses)
	}
}

func TestPacketDurationOfAllConfigurations(t *testing.T) {
	table := map[string][]float64{ // milliseconds, RFC 6716 table 2
		"SILK": {10, 20, 40, 60}, "hybrid": {10, 20}, "CELT": {2.5, 5, 10, 20},
	}
	for config := range 32 {
		mode := "CELT"
		if config < 12 {
			mode = "SILK"
		} else if config < 16 {
			mode = "hybrid"
		}
		lengths := table[mode]
		want := time.Duration(lengths[config%len(lengths)] * float64(time.Millisecond))
		got, err := PacketDuration([]byte{byte(config << 3), 1, 2, 3})
		if err != nil || got != want {
			t.Errorf("configuration %d: %v, %v; want %v", config, got, err, want)
		}
	}
}

func TestShortestPacket(t *testing.T) {
	e, d := newTestEncoder(t, Recognition), newTestDecoder(t, 16000)
	buf, pcm := make([]byte, MaxPacket), make([]int16, MaxFrameSamples(16000))
	n, err := e.opus.Encode(tone(16000, 440, 9000, 0, 40), buf) // 2.5 ms
	if err != nil {
		t.Fatal(err)
	}
	if n, err = d.Decode(buf[:n], pcm); err != nil || n != 40 {
		t.Errorf("%d samples, %v; want 40", n, err)
	}
}

func TestOpusDoesNotAllocate(t *testing.T) {
	e, d := newTestEncoder(t, Reply), newTestDecoder(t, 16000)
	frame, buf := tone(24000, 440, 9000, 0, 1440), make([]byte, MaxPacket)
	pcm, pause := make([]int16, MaxFrameSamples(16000)), []byte{0x18}
	if n := testing.AllocsPerRun(20, func() {
		n, _ := e.Encode(frame, buf)
		_, _ = d.Decode(buf[:n], pcm)
		_, _ = d.Decode(pause, pcm)
		_, _ = e.Silence(buf)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRandomBytesAsOpus(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	good := encodeTone(t, Recognition, 1)[0]
	d := newTestDecoder(t, 16000)
	pcm := make([]int16, MaxFrameSamples(16000))
	for range 3000 {
		packet := make([]byte, random.IntN(300))
		for i := range packet {
			packet[i] = byte(random.Uint32())
		}
		if n, err := d.Decode(packet, pcm); err == nil && (n <= 0 || n > len(pcm)) {
			t.Fatalf("%x: %d samples", packet, n)
		}
	}
	if n, err := d.Decode(good, pcm); err != nil || n != 960 {
		t.Errorf("after random bytes: %d samples, %v", n, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x18})
	f.Add([]byte{0x0b, 3})
	f.Add([]byte{0x0b, 0xff, 0xff, 0xff})
	f.Add(encodeTone(f, Recognition, 1)[0])
	f.Add(encodeTone(f, Reply, 1)[0])
	f.Fuzz(func(t *testing.T, packet []byte) {
		d := newTestDecoder(t, 16000)
		pcm := make([]int16, MaxFrameSamples(16000))
		length, lengthErr := PacketDuration(packet)
		n, err := d.Decode(packet, pcm)
		if err == nil && (lengthErr != nil || Recognition.Duration(n) != length) {
			t.Errorf("%d samples; PacketDuration says %v, %v", n, length, lengthErr)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e := newTestEncoder(b, Reply)
	frame, buf := tone(24000, 440, 9000, 0, 1440), make([]byte, MaxPacket)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Encode(frame, buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	d := newTestDecoder(b, 16000)
	packets := encodeTone(b, Recognition, 4)
	pcm := make([]int16, MaxFrameSamples(16000))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := d.Decode(packets[i%len(packets)], pcm); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
