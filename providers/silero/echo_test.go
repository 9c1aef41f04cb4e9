package silero

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/speechtest"
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

const packet = 960 // samples: 60 ms

// room is what the microphone hears: the sound itself and thirty reflections.
func (e echoCase) room(far []int16) []float64 {
	rng := rand.New(rand.NewPCG(3, uint64(e.late)))
	out := make([]float64, len(far))
	add := func(late int, gain float64) {
		for i := late; i < len(out); i++ {
			v := float64(far[i-late])
			if e.clip > 0 {
				v = e.clip * math.Tanh(v/e.clip)
			}
			out[i] += gain * v
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

// hear is the microphone's sound during a reply while somebody says near, as
// it comes out of the server's decoder, and after the canceller.
func (e echoCase) hear(tb testing.TB, reply, near []int16) (raw, cancelled []int16) {
	tb.Helper()
	far := coded(tb, reply, audio.Reply)
	rng := rand.New(rand.NewPCG(4, 4))
	room := e.room(far)
	for i := e.phase; i < len(room); i++ {
		v := room[i] + 8*rng.NormFloat64()
		if i < len(near) {
			v += float64(near[i])
		}
		raw = append(raw, int16(max(-32768, min(32767, v))))
	}
	raw = coded(tb, raw, audio.Recognition)
	c := audio.NewEchoCanceller()
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
	const window = 32 * time.Millisecond
	var most, at time.Duration
	for ; len(pcm) >= frameSamples; pcm = pcm[frameSamples:] {
		p, err := d.Probability(pcm[:frameSamples])
		if err != nil {
			tb.Fatal(err)
		}
		if at += window; at == from/window*window+window {
			e.Reset()
		}
		e.Feed(p, window)
		if at > from && at <= to {
			most = max(most, e.Voiced())
		}
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
		pcm = append(append(pcm, all[i%len(all)].PCM...), make([]int16, speechtest.Rate/10)...)
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

func TestProbe(t *testing.T) {
	m := newModel(t)
	reply := sentences(t, speechtest.Prompts, 20)
	speech := sentences(t, speechtest.Others, 20)
	for _, e := range echoCases() {
		raw, out := e.hear(t, reply, nil)
		t.Logf("%-16s echo alone: raw %v, cancelled %v (all %v), %.0f -> %.0f", e.name, longestVoice(t, m, raw, 1500*time.Millisecond, 20*time.Second), longestVoice(t, m, out, 1500*time.Millisecond, 20*time.Second), longestVoice(t, m, out, 0, 20*time.Second), loudness(raw), loudness(out))
		line := ""
		for _, level := range []float64{2, 1, 0.5, 0.25} {
			near := make([]int16, len(speech))
			scale := level * loudness(raw[3*16000:]) / loudness(speech[3*16000:])
			total := 0
			found := 0
			for s := 3; s < 19; s += 3 { // 1.5 s of speech every 3 s
				for i := s * 16000; i < s*16000+24000; i++ {
					near[i] = int16(max(-32768, min(32767, scale*float64(speech[i]))))
				}
			}
			_, both := e.hear(t, reply, near)
			clean := append([]int16(nil), near...)
			for s := 3; s < 19; s += 3 {
				from := time.Duration(s)*time.Second - 100*time.Millisecond
				to := from + 1800*time.Millisecond
				want := longestVoice(t, m, clean, from, to)
				got := longestVoice(t, m, both, from, to)
				if want >= 300*time.Millisecond {
					total++
					if got >= 300*time.Millisecond {
						found++
					}
				}
			}
			line += fmt.Sprintf(" %.2f: %d/%d", level, found, total)
		}
		t.Log(line)
	}
}
