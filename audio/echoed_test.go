package audio

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// overOpus is speech as it comes out of a codec.
func overOpus(t *testing.T, pcm []int16) []int16 {
	t.Helper()
	e, err := NewEncoder(Recognition)
	if err != nil {
		t.Fatal(err)
	}
	d := newTestDecoder(t, Recognition.Rate)
	packet, frame := make([]byte, MaxPacket), make([]int16, MaxFrameSamples(Recognition.Rate))
	var out []int16
	for n := Recognition.Samples(); len(pcm) >= n; pcm = pcm[n:] {
		size, err := e.Encode(pcm[:n], packet)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Decode(packet[:size], frame)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, frame[:got]...)
	}
	return out
}

// TestEchoed: speech that comes back, soft, late and in noise, is known by its
// sound within 0.7 s; other people's speech at the same time is not taken for it.
func TestEchoed(t *testing.T) {
	const delay = 16000 * 180 / 1000
	far, near := overOpus(t, farSpeech(t, 60)), nearSpeech(t, 60)
	random := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name              string
		echo, near, noise float64
		least, most       float64
	}{
		{"an echo", 0.5, 0, 0, 0.8, 1},
		{"a soft one in noise", 0.1, 0, 30, 0.4, 1}, // between two words there is only noise
		{"somebody else", 0, 1, 0, 0, 0.45},
		{"noise", 0, 0, 200, 0, 0.2},
	} {
		mic := make([]int16, len(far))
		for i := range mic {
			v := tc.near*float64(near[i%len(near)]) + tc.noise*random.NormFloat64()
			if i >= delay {
				v += tc.echo * float64(far[i-delay])
			}
			mic[i] = int16(v)
		}
		heard, played := Coarse(nil, overOpus(t, mic)), Coarse(nil, far)
		var shares []float64
		const length, before = EchoRate * 7 / 10, EchoRate * 3 / 2
		for end := length + before; end < len(heard); end += EchoRate {
			if energy := rms(heard[end-length : end]); energy > 100*tc.echo+30 {
				shares = append(shares, Echoed(heard[end-length:end], played[end-length-before:end]))
			}
		}
		if least, most := slices.Min(shares), slices.Max(shares); len(shares) < 30 || least < tc.least || most > tc.most {
			t.Errorf("%s: %.2f to %.2f in %d pieces, want %.2f to %.2f", tc.name, least, most, len(shares), tc.least, tc.most)
		}
		if slices.Sort(shares); tc.echo > 0 && shares[len(shares)/5] < 0.75 {
			t.Errorf("%s: a fifth of the pieces is below %.2f", tc.name, shares[len(shares)/5])
		}
	}
}

func TestEchoedOfLittle(t *testing.T) {
	sound := Coarse(nil, farSpeech(t, 2))
	for name, got := range map[string]float64{
		"nothing":             Echoed(nil, sound),
		"nothing played":      Echoed(sound, nil),
		"more than played":    Echoed(sound, sound[1:]),
		"silence":             Echoed(make([]int16, 100), sound),
		"silence played":      Echoed(sound[:1000], make([]int16, 2000)),
		"longer than compare": Echoed(make([]int16, 40000), make([]int16, 60000)),
	} {
		if got != 0 {
			t.Errorf("%s: %g", name, got)
		}
	}
	if got := Echoed(sound[3000:4000], sound[:4000]); got < 0.99 {
		t.Errorf("itself: %g", got)
	}
	if got := Coarse(nil, []int16{4, 4, 4, 8, 1, 2, 3}); !slices.Equal(got, []int16{5}) {
		t.Errorf("coarse: %v", got)
	}
}

func BenchmarkEchoed(b *testing.B) {
	sound := Coarse(nil, farSpeech(b, 4))
	for b.Loop() {
		Echoed(sound[6000:], sound)
	}
}
