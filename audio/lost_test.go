package audio

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hraban/opus"

	"xiaozhi/audio/internal/dsp"
)

// speechLike is a voice without words: a gliding tone with overtones, in
// syllables of a quarter second.
func speechLike(rate, n int) []int16 {
	pcm := make([]int16, n)
	phase := 0.0
	for i := range pcm {
		at := float64(i) / float64(rate)
		phase += 2 * math.Pi * (130 + 40*math.Sin(2*math.Pi*1.3*at)) / float64(rate)
		v := 0.0
		for k := 1; k <= 12; k++ {
			v += math.Sin(float64(k)*phase) / float64(k)
		}
		swell := 0.5 - 0.5*math.Cos(2*math.Pi*4*at)
		pcm[i] = dsp.Round(float32(9000 * swell * v))
	}
	return pcm
}

// newVoiceEncoder makes an encoder as others use it: SILK, or SILK and CELT together.
func newVoiceEncoder(tb testing.TB, rate, bitrate int) *opus.Encoder {
	tb.Helper()
	e, err := opus.NewEncoder(rate, 1, opus.AppVoIP)
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(e.SetComplexity(5), e.SetBitrate(bitrate)); err != nil {
		tb.Fatal(err)
	}
	return e
}

// encodeAll encodes pcm frame by frame as devices do, with in-band FEC if asked for.
func encodeAll(t *testing.T, f Format, pcm []int16, fec bool) [][]byte {
	t.Helper()
	e := newVoiceEncoder(t, f.Rate, 24000)
	if fec {
		if err := errors.Join(e.SetInBandFEC(true), e.SetPacketLossPerc(20)); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, MaxPacket)
	var packets [][]byte
	for ; len(pcm) >= f.Samples(); pcm = pcm[f.Samples():] {
		n, err := e.Encode(pcm[:f.Samples()], buf)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, bytes.Clone(buf[:n]))
	}
	return packets
}

// unlike is the energy of the difference of two sounds in parts of the first's.
func unlike(a, b []int16) float64 {
	sum, all := 0.0, 1.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
		all += float64(a[i]) * float64(a[i])
	}
	return sum / all
}

// TestLostPacketsTakeTheirTime loses every fifth packet. The sound stays as
// long as it was, and FEC brings back what concealment cannot.
func TestLostPacketsTakeTheirTime(t *testing.T) {
	f := Recognition
	packets := encodeAll(t, f, speechLike(f.Rate, 5*f.Rate), true)
	clean := receiveAll(t, packets, func(int) bool { return false }, false)
	differ := map[bool]float64{}
	for _, fec := range []bool{false, true} {
		got := receiveAll(t, packets, func(i int) bool { return i%5 == 3 }, fec)
		if len(got) != len(packets)*f.Samples() {
			t.Fatalf("fec %v: %d samples of %d packets", fec, len(got), len(packets))
		}
		for i := 3; i < len(packets); i += 5 {
			from := i * f.Samples()
			differ[fec] += unlike(clean[from:from+f.Samples()], got[from:from+f.Samples()]) / float64(len(packets)/5)
		}
	}
	t.Logf("error of lost frames: concealed %.2f, with fec %.2f", differ[false], differ[true])
	if differ[true] > 0.5*differ[false] || differ[true] > 0.5 {
		t.Errorf("error of lost frames: concealed %.2f, with fec %.2f", differ[false], differ[true])
	}
	if differ[false] > 3 {
		t.Errorf("concealment makes noise: error %.2f", differ[false])
	}
}

// receiveAll decodes packets of which some are lost.
func receiveAll(t *testing.T, packets [][]byte, lost func(i int) bool, fec bool) []int16 {
	t.Helper()
	d := newTestDecoder(t, 16000)
	pcm := make([]int16, MaxFrameSamples(16000))
	var got []int16
	for i, p := range packets {
		var n int
		var err error
		if !lost(i) {
			n, err = d.Receive(p, pcm)
		} else if fec && i+1 < len(packets) {
			n, err = d.Lost(packets[i+1], pcm)
		} else {
			n, err = d.Lost(nil, pcm)
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, pcm[:n]...)
	}
	return got
}

// TestBrokenPacketsTakeTheirTime puts what is no Opus among packets of every
// length (behaviour 16).
func TestBrokenPacketsTakeTheirTime(t *testing.T) {
	for _, frame := range []time.Duration{20 * ms, 40 * ms, 60 * ms} {
		f := Format{16000, frame}
		d, pcm := newTestDecoder(t, 16000), make([]int16, MaxFrameSamples(16000))
		total, broken := 0, 0
		packets := encodeAll(t, f, speechLike(16000, 3*16000), false)
		for i, p := range packets {
			if i%7 == 6 {
				p = []byte{0x01, 1, 2, 3} // two frames of one length each, in three bytes
			}
			n, err := d.Receive(p, pcm)
			if err != nil {
				broken++
			}
			total += n
		}
		if total != len(packets)*f.Samples() || broken != len(packets)/7 {
			t.Errorf("%v: %d samples, %d broken, of %d packets", frame, total, broken, len(packets))
		}
	}
}

func TestLossBeforeAnyPacket(t *testing.T) {
	d, pcm := newTestDecoder(t, 16000), make([]int16, MaxFrameSamples(16000))
	for range 3 {
		n, err := d.Receive([]byte{0xff, 0xff, 0xff, 1, 2, 3}, pcm)
		if n != 960 || err == nil {
			t.Errorf("%d samples, %v", n, err)
		}
		if loud := rms(pcm[:n]); loud > 1 {
			t.Errorf("noise of loudness %.0f out of nothing", loud)
		}
	}
	if n, err := d.Receive(nil, pcm); n != 960 || err == nil {
		t.Errorf("an empty packet: %d samples, %v", n, err)
	}
	if n, err := d.Lost(nil, pcm[:100]); n != 0 || err == nil {
		t.Errorf("no room: %d samples, %v", n, err)
	}
}

// TestConcealmentFades: a long loss becomes silence, not a hum.
func TestConcealmentFades(t *testing.T) {
	f := Recognition
	d, pcm := newTestDecoder(t, 16000), make([]int16, MaxFrameSamples(16000))
	for _, p := range encodeVoice(t, f, 10) {
		if _, err := d.Decode(p, pcm); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if _, err := d.Lost(nil, pcm); err != nil {
			t.Fatal(err)
		}
	}
	if loud := rms(pcm[:960]); loud > 200 {
		t.Errorf("after 1.2 s of loss the loudness is %.0f", loud)
	}
}

func TestEncoderBeginsAnew(t *testing.T) {
	f := Reply
	e := newTestEncoder(t, f)
	buf := make([]byte, MaxPacket)
	sound := speechLike(f.Rate, f.Samples()*4)
	encode := func(i int) []byte {
		n, err := e.Encode(sound[i*f.Samples():(i+1)*f.Samples()], buf)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(buf[:n])
	}
	first := encode(2)
	encode(3)
	if err := e.Reset(); err != nil {
		t.Fatal(err)
	}
	if again := encode(2); !bytes.Equal(first, again) {
		t.Error("after Reset the encoder still knows what was before")
	}
}

// TestStreamBeginsInAnyDecoder begins speech where the decoder has heard the end of other speech, which nobody tells the
// encoder: its first packet is as loud as in a new decoder. A stream after Reset begins like one of a new encoder.
func TestStreamBeginsInAnyDecoder(t *testing.T) {
	f := Reply
	sound, buf := speechLike(f.Rate, 4*f.Rate), make([]byte, MaxPacket)
	old, used := newTestDecoder(t, f.Rate), make([]int16, MaxFrameSamples(f.Rate))
	for at := range 40 {
		e := newTestEncoder(t, f)
		play := func(pcm []int16, decoders ...*Decoder) (loud []float64) {
			n, err := e.Encode(pcm, buf)
			for _, d := range decoders {
				if n, err := d.Decode(buf[:n], used); err != nil || n != f.Samples() {
					t.Fatal(n, err)
				}
				loud = append(loud, rms(used[f.Samples()/6:f.Samples()])) // behind the end of what was before
			}
			if err != nil {
				t.Fatal(err)
			}
			return loud
		}
		for i := range 3 {
			play(sound[i*f.Samples():][:f.Samples()], old)
		}
		play(make([]int16, f.Samples()), old)
		if err := e.Reset(); err != nil {
			t.Fatal(err)
		}
		from := 240 * at
		loud := play(sound[from:][:f.Samples()], old, newTestDecoder(t, f.Rate))
		if ratio := loud[0] / loud[1]; ratio < 0.95 || ratio > 1.05 {
			t.Errorf("speech that begins at sample %d is %.2f times as loud as in a new decoder", from, ratio)
		}
	}
}
