package echo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"xiaozhi/audio"
	"xiaozhi/internal/testall"
)

// overOpus is speech as it comes out of a codec.
func overOpus(t *testing.T, pcm []int16) []int16 {
	t.Helper()
	e, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
	if err != nil {
		t.Fatal(err)
	}
	d := newTestDecoder(t, audio.Recognition.Rate)
	packet, frame := make([]byte, audio.MaxPacket), make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
	var out []int16
	for n := audio.Recognition.Samples(); len(pcm) >= n; pcm = pcm[n:] {
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

// TestSimilarity: speech that comes back, soft, late and in noise, is known by its
// sound within 0.7 s; other people's speech at the same time is not taken for it.
func TestSimilarity(t *testing.T) {
	testall.Arithmetic(t)
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
		heard, played := coarse(nil, overOpus(t, mic)), coarse(nil, far)
		var shares []float64
		const length, before = Rate * 7 / 10, Rate * 3 / 2
		for end := length + before; end < len(heard); end += Rate {
			if energy := rms(heard[end-length : end]); energy > 100*tc.echo+30 {
				shares = append(shares, similarity(heard[end-length:end], played[end-length-before:end]))
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

func TestSimilarityOfLittle(t *testing.T) {
	sound := coarse(nil, farSpeech(t, 2))
	for name, got := range map[string]float64{
		"nothing":             similarity(nil, sound),
		"nothing played":      similarity(sound, nil),
		"more than played":    similarity(sound, sound[1:]),
		"silence":             similarity(make([]int16, 100), sound),
		"silence played":      similarity(sound[:1000], make([]int16, 2000)),
		"longer than compare": similarity(make([]int16, 40000), make([]int16, 60000)),
	} {
		if got != 0 {
			t.Errorf("%s: %g", name, got)
		}
	}
	if got := similarity(sound[3000:4000], sound[:4000]); got < 0.99 {
		t.Errorf("itself: %g", got)
	}
	if got := coarse(nil, []int16{4, 4, 4, 8, 1, 2, 3}); !slices.Equal(got, []int16{5}) {
		t.Errorf("coarse: %v", got)
	}
}

func BenchmarkSimilarity(b *testing.B) {
	sound := coarse(nil, farSpeech(b, 4))
	for b.Loop() {
		similarity(sound[6000:], sound)
	}
}

func newTestDecoder(tb testing.TB, rate int) *audio.Decoder {
	tb.Helper()
	d, err := audio.NewDecoder(rate)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}
