package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func allRates() []int {
	return []int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}
}

func newTestResampler(tb testing.TB, from, to int) *Resampler {
	tb.Helper()
	r, err := NewResampler(from, to)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// convert resamples a whole stream at once.
func convert(r *Resampler, src []int16) []int16 { return r.Flush(r.Write(nil, src)) }

// forAllRatios runs the test for every pair of different rates.
func forAllRatios(t *testing.T, test func(t *testing.T, from, to int)) {
	t.Helper()
	for _, from := range allRates() {
		for _, to := range allRates() {
			if from != to {
				t.Run(fmt.Sprintf("%d-%d", from, to), func(t *testing.T) { test(t, from, to) })
			}
		}
	}
}

// steady is the middle of a resampled tone, away from where it is switched on
// and off.
func steady(pcm []int16) []int16 { return pcm[len(pcm)/4 : len(pcm)*3/4] }

// fit finds the sine of that frequency in pcm, and what is left without it:
// both as loudness (root mean square).
func fit(pcm []int16, rate int, hz float64) (in, rest float64) {
	var ss, cc, sc, sy, cy float64 // least squares for a·sin + b·cos
	for i, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		ss, cc, sc = ss+s*s, cc+c*c, sc+s*c
		sy, cy = sy+s*float64(v), cy+c*float64(v)
	}
	det := ss*cc - sc*sc
	a, b := (sy*cc-cy*sc)/det, (cy*ss-sy*sc)/det
	for i, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		d := float64(v) - a*s - b*c
		rest += d * d
	}
	return math.Hypot(a, b) / math.Sqrt2, math.Sqrt(rest / float64(len(pcm)))
}

func decibel(a, b float64) float64 { return 20 * math.Log10(max(a, 1e-9)/b) }

const (
	loud      = 25000.0
	rejection = -80.0 // dB
)

func TestAliasRejection(t *testing.T) {
	forAllRatios(t, func(t *testing.T, from, to int) {
		hz := float64(to)/2 + 700
		if hz >= float64(from)/2-100 {
			t.Logf("a tone of %.0f Hz does not exist at %d Hz", hz, from)
			return
		}
		out := steady(convert(newTestResampler(t, from, to), tone(from, hz, loud, 0, from/4)))
		if left := decibel(rms(out), loud/math.Sqrt2); left > rejection {
			t.Errorf("%.0f Hz comes through at %.1f dB", hz, left)
		}
	})
}

func TestPassbandAndImages(t *testing.T) {
	forAllRatios(t, func(t *testing.T, from, to int) {
		r := newTestResampler(t, from, to)
		for _, part := range []float64{0.02, 0.3, 0.6, 0.8, 0.85} {
			hz := part * float64(min(from, to)) / 2
			out := steady(convert(r, tone(from, hz, loud, 0, from/4)))
			in, rest := fit(out, to, hz)
			if gain := decibel(in, loud/math.Sqrt2); math.Abs(gain) > 0.5 {
				t.Errorf("%.0f Hz comes out at %+.2f dB", hz, gain)
			}
			if left := decibel(rest, loud/math.Sqrt2); left > rejection {
				t.Errorf("%.0f Hz leaves %.1f dB of something else", hz, left)
			}
		}
	})
}

func TestChunksDoNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	src := make([]int16, 4000)
	for i := range src {
		src[i] = int16(random.Uint32())
	}
	forAllRatios(t, func(t *testing.T, from, to int) {
		r := newTestResampler(t, from, to)
		whole := convert(r, src)
		for _, most := range []int{1, 300, 3000} {
			var out []int16
			for rest := src; len(rest) > 0; {
				n := min(len(rest), 1+random.IntN(most))
				out = r.Write(out, rest[:n])
				out = r.Write(out, nil)
				rest = rest[n:]
			}
			if out = r.Flush(out); !slices.Equal(out, whole) {
				t.Fatalf("chunks of up to %d give another result", most)
			}
		}
	})
}

func TestLengthIsKept(t *testing.T) {
	forAllRatios(t, func(t *testing.T, from, to int) {
		r := newTestResampler(t, from, to)
		for _, n := range []int{0, 1, 2, 59, 480, 1023, 1024, 1025, from} {
			out := convert(r, make([]int16, n))
			if want := (n*to + from - 1) / from; len(out) != want {
				t.Errorf("%d samples become %d, want %d", n, len(out), want)
			}
		}
	})
}

func TestResampleDelay(t *testing.T) {
	forAllRatios(t, func(t *testing.T, from, to int) {
		src := make([]int16, from/4)
		src[from/8] = 30000 // a click in the middle
		out := convert(newTestResampler(t, from, to), src)
		at, best := 0, 0
		for i, v := range out {
			if a := max(int(v), -int(v)); a > best {
				at, best = i, a
			}
		}
		if want := from / 8 * to / from; at < want-1 || at > want+1 {
			t.Errorf("the click is at %d, want %d", at, want)
		}
	})
}

func TestLoudSoundSaturates(t *testing.T) {
	for _, to := range []int{24000, 8000, 48000} {
		src := make([]int16, 4000)
		for i := range src { // a full-scale square wave overshoots when filtered
			src[i] = math.MaxInt16
			if i/20%2 == 1 {
				src[i] = math.MinInt16
			}
		}
		out := convert(newTestResampler(t, 16000, to), src)
		period := 40 * to / 16000
		for i := period; i < len(out)-period; i++ {
			if at := i % period; at > period/8 && at < period*3/8 && out[i] < 20000 {
				t.Fatalf("to %d Hz: sample %d is %d inside a positive half wave", to, i, out[i])
			}
		}
		if slices.Max(out) != math.MaxInt16 || slices.Min(out) != math.MinInt16 {
			t.Errorf("to %d Hz: the peaks are %d and %d", to, slices.Max(out), slices.Min(out))
		}
	}
}

func TestEqualRatesPassThrough(t *testing.T) {
	src := []int16{1, -2, 32767, -32768}
	for _, rate := range allRates() {
		r := newTestResampler(t, rate, rate)
		out := r.Write([]int16{9}, src)
		r.Reset()
		if out = r.Flush(out); !slices.Equal(out, append([]int16{9}, src...)) {
			t.Errorf("%d Hz: got %v", rate, out)
		}
	}
}

func TestResetBeginsAnew(t *testing.T) {
	src := tone(22050, 500, loud, 0, 3000)
	r := newTestResampler(t, 22050, 24000)
	want := convert(r, src)
	r.Write(nil, tone(22050, 3000, loud, 0, 777))
	r.Reset()
	if got := convert(r, src); !slices.Equal(got, want) {
		t.Error("something of the stream before is left")
	}
}

func TestResamplerRefuses(t *testing.T) {
	for _, c := range [][2]int{{0, 16000}, {16000, 0}, {-8000, 8000}, {16000, 16001}, {96000, 48000}} {
		if _, err := NewResampler(c[0], c[1]); err == nil {
			t.Errorf("%d to %d Hz was accepted", c[0], c[1])
		}
	}
}

func TestResampleDoesNotAllocate(t *testing.T) {
	r := newTestResampler(t, 22050, 24000)
	src, dst := tone(22050, 500, loud, 0, 1323), make([]int16, 0, 4096)
	if n := testing.AllocsPerRun(50, func() { dst = r.Flush(r.Write(dst[:0], src)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkResample(b *testing.B) {
	for _, c := range [][2]int{{16000, 24000}, {22050, 24000}, {24000, 16000}, {48000, 16000}, {44100, 24000}} {
		b.Run(fmt.Sprintf("%d-%d", c[0], c[1]), func(b *testing.B) {
			r := newTestResampler(b, c[0], c[1])
			src, dst := tone(c[0], 500, loud, 0, c[0]*60/1000), make([]int16, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				dst = r.Write(dst[:0], src)
			}
		})
	}
}

func BenchmarkNewResampler(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newTestResampler(b, 22050, 24000)
	}
}
