package silero

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"xiaozhi/internal/testall"
)

// plain is the model as its definition says it, in float64, step by step and
// slowly: what the quick one is measured against on sound that no recording holds.
type plain struct {
	conv, bias                             [4][]float32
	input, recurrent, inputBias, stateBias []float32
	out                                    []float32
	outBias                                float32
	context                                [contextSamples]int16
	h, c                                   [hidden]float64
}

func newPlain() *plain {
	r := &reader{rest: embedded}
	p := &plain{}
	for i, n := range [4]int{128 * bins, 64 * 128, 64 * 64, 128 * 64} {
		p.conv[i], p.bias[i] = r.take(3*n), r.take([4]int{128, 64, 64, 128}[i])
	}
	p.input, p.recurrent, p.inputBias, p.stateBias = r.take(512*hidden), r.take(512*hidden), r.take(512), r.take(512)
	p.out, p.outBias = r.take(hidden), r.take(1)[0]
	return p
}

// spectra are the magnitudes of the four windows, [step][bin].
func (p *plain) spectra(frame []int16) (all [][]float64) {
	var x []float64
	for _, v := range append(p.context[:], frame...) {
		x = append(x, float64(v)/32768)
	}
	for i := range 64 {
		x = append(x, x[len(x)-2-2*i])
	}
	copy(p.context[:], frame[frameSamples-contextSamples:])
	for step := range steps {
		var one []float64
		for k := range bins {
			var sum complex128
			for i, v := range x[step*fftHop:][:fftSize] {
				hann := 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/fftSize)
				sum += complex(v*hann, 0) * cmplx.Rect(1, -2*math.Pi*float64(k*i)/fftSize)
			}
			one = append(one, cmplx.Abs(sum))
		}
		all = append(all, one)
	}
	return all
}

// convolve is one layer with its ReLU: kernel 3, silence at both ends.
func convolve(in [][]float64, kernels, bias []float32, stride int) (out [][]float64) {
	for step := 0; step < len(in); step += stride {
		var one []float64
		for o, b := range bias {
			sum := float64(b)
			for tap := range 3 {
				if at := step + tap - 1; at >= 0 && at < len(in) {
					for i, v := range in[at] {
						sum += v * float64(kernels[(o*len(in[at])+i)*3+tap])
					}
				}
			}
			one = append(one, max(sum, 0))
		}
		out = append(out, one)
	}
	return out
}

func (p *plain) probability(frame []int16) float64 {
	x := p.spectra(frame)
	for layer, stride := range []int{1, 2, 2, 1} {
		x = convolve(x, p.conv[layer], p.bias[layer], stride)
	}
	logistic := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	before := p.h
	sum := float64(p.outBias)
	for unit := range hidden {
		var gate [4]float64
		for g := range gate {
			row := g*hidden + unit
			gate[g] = float64(p.inputBias[row]) + float64(p.stateBias[row])
			for i := range hidden {
				gate[g] += float64(p.input[row*hidden+i])*x[0][i] + float64(p.recurrent[row*hidden+i])*before[i]
			}
		}
		p.c[unit] = logistic(gate[1])*p.c[unit] + logistic(gate[0])*math.Tanh(gate[2])
		p.h[unit] = logistic(gate[3]) * math.Tanh(p.c[unit])
		sum += float64(p.out[unit]) * max(p.h[unit], 0)
	}
	return logistic(sum)
}

// wantPlain feeds the same sound to both and gives the largest difference.
func wantPlain(t *testing.T, m *Model, what string, pcm []int16) {
	t.Helper()
	p, d := newPlain(), newDetector(t, m)
	var worst float64
	for i := 0; i+frameSamples <= len(pcm); i += frameSamples {
		frame := pcm[i:][:frameSamples]
		got, err := d.Probability(frame)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, math.Abs(float64(got)-p.probability(frame)))
	}
	t.Logf("%s: largest difference %.2g", what, worst)
	if !(worst <= tolerance) {
		t.Errorf("%s: the quick network is off by %g", what, worst)
	}
}

func TestDetectorAgreesWithItsDefinition(t *testing.T) {
	testall.Arithmetic(t)
	m := newModel(t)
	dice := rand.New(rand.NewPCG(1, 2))
	speech := loadClips(t)[0].pcm
	for _, level := range []float64{1, 30, 1000, 32767} {
		pcm := make([]int16, 12*frameSamples)
		for i := range pcm {
			pcm[i] = int16(level * (2*dice.Float64() - 1))
		}
		wantPlain(t, m, "noise", pcm)
	}
	clipped := make([]int16, 20*frameSamples)
	for i := range clipped {
		clipped[i] = int16(max(min(40*int(speech[i+16000]), math.MaxInt16), math.MinInt16))
	}
	wantPlain(t, m, "clipped speech", clipped)
	for _, hertz := range []float64{50, 440, 3000, 7990} {
		pcm := make([]int16, 8*frameSamples)
		for i := range pcm {
			pcm[i] = int16(20000 * math.Sin(2*math.Pi*hertz*float64(i)/16000))
		}
		wantPlain(t, m, "tone", pcm)
	}
}

// TestSilenceIsComputedInShort lets speech begin at every place of a frame after
// silence, so that context and frame are silent in every combination.
func TestSilenceIsComputedInShort(t *testing.T) {
	testall.Arithmetic(t)
	m := newModel(t)
	speech := loadClips(t)[0].pcm[16000:]
	for _, before := range []int{0, 4} { // frames of speech before the silence
		for _, offset := range []int{0, 1, 64, 447, 449, 511} {
			pcm := append([]int16{}, speech[:before*frameSamples]...)
			pcm = append(pcm, make([]int16, 6*frameSamples+offset)...)
			pcm = append(pcm, speech[5000:][:5*frameSamples-offset]...)
			wantPlain(t, m, "speech after silence", pcm)
		}
	}
}

// TestLongSilence checks that what is left out changes nothing at all, however
// long the silence is: the same sound is heard by way of the whole network.
func TestLongSilence(t *testing.T) {
	testall.Arithmetic(t)
	m := newModel(t)
	speech := loadClips(t)[0].pcm[16000:]
	d, whole := newDetector(t, m).(*Detector), &state{}
	for i := range 1000 {
		frame := make([]int16, frameSamples)
		if i < 20 || i >= 980 {
			copy(frame, speech[i%20*frameSamples:])
		}
		var window window
		var magnitudes features
		var gates [4 * hidden]float32
		fill(&window, &d.context, frame)
		m.fft.magnitudes(&window, &magnitudes)
		m.net.hear(&magnitudes, &gates)
		want := m.net.recur(&gates, whole)
		if got, err := d.Probability(frame); err != nil || got != want {
			t.Fatalf("frame %d: probability %v, by the whole network %v (%v)", i, got, want, err)
		}
	}
}

func BenchmarkSilence(b *testing.B) {
	d := newDetector(b, newModel(b))
	frame := make([]int16, frameSamples)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Probability(frame); err != nil {
			b.Fatal(err)
		}
	}
}
