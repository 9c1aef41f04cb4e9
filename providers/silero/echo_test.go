package silero

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/speechtest"
	"xiaozhi/internal/testall"
)

// echoCase is a speaker that hears itself, far from quiet.
type echoCase struct {
	name  string
	late  int     // samples until the microphone hears it
	gain  float64 // loudness of the echo in parts of the sound
	clip  float64 // what the loudspeaker cannot exceed; 0: all it is given
	phase int     // samples by which the microphone's frames begin later than packets
	queue int     // timestamps that wait on the device
}

const (
	packet  = 960                    // samples: 60 ms
	bargeIn = 280 * time.Millisecond // the voice that stops a reply
)

// room is what the microphone hears: the sound itself and thirty reflections.
func (e echoCase) room(far []int16) []float64 {
	rng := rand.New(rand.NewPCG(3, uint64(e.late)))
	out := make([]float64, len(far))
	sound := make([]float64, len(far))
	for i, v := range far {
		sound[i] = float64(v)
		if e.clip > 0 {
			sound[i] = e.clip * math.Tanh(sound[i]/e.clip)
		}
	}
	add := func(late int, gain float64) {
		for i, v := range sound[:len(out)-late] {
			out[late+i] += gain * v
		}
	}
	add(e.late, e.gain)
	for range 30 {
		after := rng.IntN(1600) // 100 ms
		add(e.late+after, e.gain*0.3*rng.NormFloat64()*math.Exp(-float64(after)/500))
	}
	return out
}

// coded is the sound after the codec of that format, at 16 kHz.
func coded(tb testing.TB, pcm []int16, f audio.Format) []int16 {
	tb.Helper()
	enc, err := audio.NewEncoder(f)
	if err != nil {
		tb.Fatal(err)
	}
	dec, err := audio.NewDecoder(speechtest.Rate)
	if err != nil {
		tb.Fatal(err)
	}
	up, err := audio.NewResampler(speechtest.Rate, f.Rate)
	if err != nil {
		tb.Fatal(err)
	}
	in := up.Flush(up.Write(nil, pcm))
	var out []int16
	buf, decoded := make([]byte, audio.MaxPacket), make([]int16, audio.MaxFrameSamples(speechtest.Rate))
	for ; len(in) >= f.Samples(); in = in[f.Samples():] {
		n, err := enc.Encode(in[:f.Samples()], buf)
		if err != nil {
			tb.Fatal(err)
		}
		k, err := dec.Decode(buf[:n], decoded)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, decoded[:k]...)
	}
	return out
}

// hear is the microphone's sound in a room while a user says near, as it comes
// out of the server's decoder, and after the canceller.
func (e echoCase) hear(tb testing.TB, far []int16, room []float64, near []int16) (raw, cancelled []int16) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(4, 4))
	for i := e.phase; i < len(room); i++ {
		v := room[i] + 8*rng.NormFloat64()
		if i < len(near) {
			v += float64(near[i])
		}
		raw = append(raw, int16(max(-32768, min(32767, v))))
	}
	raw = coded(tb, raw, audio.Recognition)
	c := echo.NewCanceller()
	sent := 0
	for i := 0; i+packet <= len(raw); i += packet {
		for ; sent < i/packet+5 && (sent+1)*packet <= len(far); sent++ {
			c.Played(uint32(1000+sent), far[sent*packet:][:packet])
		}
		stamp := uint32(0) // of the packet that was written last, or of one before it
		if k := (i+packet+e.phase)/packet - 1 - e.queue; k >= 0 {
			stamp = uint32(1000 + k)
		}
		frame := append([]int16(nil), raw[i:i+packet]...)
		c.Cancel(stamp, frame)
		cancelled = append(cancelled, frame...)
	}
	return raw, cancelled
}

// longestVoice is the most voice that one utterance has between two times.
func longestVoice(tb testing.TB, m *Model, pcm []int16, from, to time.Duration) time.Duration {
	tb.Helper()
	d, e := newDetector(tb, m), audio.NewEndpointer(audio.EndpointOptions{})
	now := max(0, from-1500*time.Millisecond) // the detector remembers
	pcm = pcm[int(now.Seconds()*speechtest.Rate):]
	most, window := time.Duration(0), audio.Recognition.Duration(frameSamples)
	for ; len(pcm) >= frameSamples && now < to; pcm = pcm[frameSamples:] {
		p, err := d.Probability(pcm[:frameSamples])
		if err != nil {
			tb.Fatal(err)
		}
		if now += window; now < from {
			continue
		}
		e.Feed(p, window)
		most = max(most, e.Voiced())
	}
	return most
}

func sentences(tb testing.TB, clips func() ([]speechtest.Clip, error), seconds int) []int16 {
	tb.Helper()
	all, err := clips()
	if err != nil {
		tb.Fatal(err)
	}
	var pcm []int16
	for i := 0; len(pcm) < seconds*speechtest.Rate; i++ {
		pcm = append(append(pcm, all[i%len(all)].PCM()...), make([]int16, speechtest.Rate/10)...)
	}
	return pcm[:seconds*speechtest.Rate]
}

func echoCases() []echoCase {
	return []echoCase{
		{"near and soft", 320, 0.2, 0, 0, 0},
		{"usual", 1500, 0.5, 0, 400, 0},
		{"late, queued", 3000, 0.5, 0, 700, 2},
		{"loud", 900, 1.2, 0, 100, 1},
		{"overdriven", 1500, 0.5, 5000, 300, 0},
	}
}

func loudness(pcm []int16) float64 {
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(1, len(pcm))))
}

// The detector hears no voice in what is left of a reply of 20 s, though it
// hears hardly anything else in what the microphone gets.
func TestEchoAlone(t *testing.T) {
	testall.Arithmetic(t)
	m := newModel(t)
	reply := coded(t, sentences(t, speechtest.Prompts, 20), audio.Reply)
	for _, e := range echoCases() {
		raw, out := e.hear(t, reply, e.room(reply), nil)
		const settled, end = 1500 * time.Millisecond, 20 * time.Second
		if got := longestVoice(t, m, raw, settled, 6*time.Second); got < time.Second {
			t.Errorf("%s: %v of voice in the echo itself: this test shows nothing", e.name, got)
		}
		if got := longestVoice(t, m, out, settled, end); got >= bargeIn {
			t.Errorf("%s: %v of voice in what is left, %.0f of %.0f loud", e.name, got, loudness(out), loudness(raw))
		}
	}
}

// Somebody who speaks over the reply, as loud as its echo and half so, is heard.
func TestVoiceOverEchoIsHeard(t *testing.T) {
	testall.Arithmetic(t)
	m := newModel(t)
	reply := coded(t, sentences(t, speechtest.Prompts, 12), audio.Reply)
	speech := sentences(t, speechtest.Others, 12)
	const every, length = 3, 3 * speechtest.Rate / 2 // 1.5 s of speech each 3 s
	all := echoCases()
	for _, e := range []echoCase{all[1], all[len(all)-1]} {
		room := e.room(reply)
		for _, level := range []float64{1, 0.5} {
			near, scale := make([]int16, len(speech)), level*e.gain*loudness(reply)/loudness(speech)
			for s := every; s < 11; s += every {
				for i := s * speechtest.Rate; i < s*speechtest.Rate+length; i++ {
					near[i] = int16(max(-32768, min(32767, scale*float64(speech[i]))))
				}
			}
			_, out := e.hear(t, reply, room, near)
			for s := every; s < 11; s += every {
				from := time.Duration(s)*time.Second - 100*time.Millisecond
				want := longestVoice(t, m, near, from, from+1800*time.Millisecond)
				got := longestVoice(t, m, out, from, from+1800*time.Millisecond)
				if want >= 2*bargeIn && got < bargeIn {
					t.Errorf("%s, level %v, at %d s: %v of voice, %v without the echo", e.name, level, s, got, want)
				}
			}
		}
	}
}
