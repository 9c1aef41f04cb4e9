package silero

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"xiaozhi/audio/file"
	"xiaozhi/providers"
)

const tolerance = 1e-4

// clip is a recording and what onnxruntime thinks of each of its windows.
type clip struct {
	name string
	pcm  []int16
	want []float32
}

func newModel(tb testing.TB) *Model {
	tb.Helper()
	m, err := New()
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func newDetector(tb testing.TB, m *Model) providers.Detector {
	tb.Helper()
	d, err := m.NewDetector()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func loadClips(tb testing.TB) []clip {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "reference.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var reference map[string][]float32
	if err := json.Unmarshal(data, &reference); err != nil {
		tb.Fatal(err)
	}
	var clips []clip
	for _, name := range []string{"clean.wav", "noisy.wav", "sounds.wav"} {
		f, err := os.Open(filepath.Join("testdata", name))
		if err != nil {
			tb.Fatal(err)
		}
		pcm, rate, err := file.ReadWAV(f)
		_ = f.Close()
		if err != nil || rate != 16000 {
			tb.Fatalf("%s: rate %d, %v", name, rate, err)
		}
		if len(reference[name]) != len(pcm)/frameSamples {
			tb.Fatalf("%s: %d reference values for %d windows", name, len(reference[name]), len(pcm)/frameSamples)
		}
		clips = append(clips, clip{name, pcm, reference[name]})
	}
	return clips
}

// window gives the clip's window of that number.
func (c clip) window(i int) []int16 { return c.pcm[i*frameSamples:][:frameSamples] }

// check feeds one window and compares.
func (c clip) check(tb testing.TB, d providers.Detector, i int) {
	tb.Helper()
	p, err := d.Probability(c.window(i))
	if err != nil {
		tb.Fatalf("%s, window %d: %v", c.name, i, err)
	}
	if diff := math.Abs(float64(p - c.want[i])); !(diff <= tolerance) {
		tb.Errorf("%s, window %d: probability %.7f, reference %.7f", c.name, i, p, c.want[i])
	}
}

func TestDetectorAgreesWithReference(t *testing.T) {
	d := newDetector(t, newModel(t))
	var worst float64
	windows := 0
	for _, c := range loadClips(t) { // one detector for all: Reset must be complete
		d.Reset()
		for i := range c.want {
			p, err := d.Probability(c.window(i))
			if err != nil {
				t.Fatal(err)
			}
			if !(p >= 0 && p <= 1) {
				t.Fatalf("%s, window %d: %v is no probability", c.name, i, p)
			}
			worst = max(worst, math.Abs(float64(p-c.want[i])))
			windows++
		}
	}
	t.Logf("largest difference %.2g over %d windows", worst, windows)
	if !(worst <= tolerance) {
		t.Errorf("largest difference %g, want at most %g", worst, tolerance)
	}
}

func TestResetInTheMiddle(t *testing.T) {
	clips := loadClips(t)
	d := newDetector(t, newModel(t))
	for _, upTo := range []int{1, 7, 40} {
		for i := range upTo {
			if _, err := d.Probability(clips[1].window(i)); err != nil {
				t.Fatal(err)
			}
		}
		d.Reset()
		for i := range 30 {
			clips[0].check(t, d, i)
		}
		d.Reset()
	}
}

func TestInterleavedDetectors(t *testing.T) {
	clips := loadClips(t)
	m := newModel(t)
	a, b := newDetector(t, m), newDetector(t, m)
	for i := range min(len(clips[0].want), len(clips[1].want)) {
		clips[0].check(t, a, i)
		clips[1].check(t, b, i)
	}
}

func TestManyGoroutinesShareTheModel(t *testing.T) {
	clips := loadClips(t)
	m := newModel(t)
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			d, err := m.NewDetector()
			if err != nil {
				t.Error(err)
				return
			}
			c := clips[g%len(clips)]
			for i := range min(len(c.want), 30) {
				p, err := d.Probability(c.window(i))
				if diff := math.Abs(float64(p - c.want[i])); err != nil || !(diff <= tolerance) {
					t.Errorf("goroutine %d, %s, window %d: %v, want %v (%v)", g, c.name, i, p, c.want[i], err)
				}
			}
		})
	}
	wg.Wait()
}

func TestWrongLengthChangesNothing(t *testing.T) {
	m := newModel(t)
	if m.FrameSamples() != 512 {
		t.Errorf("FrameSamples is %d", m.FrameSamples())
	}
	c := loadClips(t)[0]
	d := newDetector(t, m)
	for i := range 20 {
		for _, n := range []int{0, 1, 511, 513, 960} {
			if _, err := d.Probability(make([]int16, n)); err == nil {
				t.Fatalf("a frame of %d samples was taken", n)
			}
		}
		c.check(t, d, i)
	}
}

func TestClosedDetector(t *testing.T) {
	d := newDetector(t, newModel(t))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Probability(make([]int16, 512)); err == nil {
		t.Error("a closed detector answered")
	}
	d.Reset()
	if err := d.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestExtremeSoundStaysFinite(t *testing.T) {
	d := newDetector(t, newModel(t))
	frame := make([]int16, frameSamples)
	for i := range frame {
		frame[i] = math.MaxInt16
		if i%2 == 1 {
			frame[i] = math.MinInt16
		}
	}
	for range 50 {
		p, err := d.Probability(frame)
		if err != nil || !(p >= 0 && p <= 1) {
			t.Fatalf("probability %v, %v", p, err)
		}
	}
}

func TestUnpackRefusesWrongSize(t *testing.T) {
	for _, data := range [][]byte{nil, embedded[:len(embedded)-4], append([]byte{0}, embedded...)} {
		if _, err := unpack(data); err == nil {
			t.Errorf("%d bytes of weights were taken", len(data))
		}
	}
}

func TestProbabilityDoesNotAllocate(t *testing.T) {
	d := newDetector(t, newModel(t))
	frame := loadClips(t)[0].window(20)
	if n := testing.AllocsPerRun(20, func() { _, _ = d.Probability(frame) }); n != 0 {
		t.Errorf("%v allocations per window", n)
	}
}

func BenchmarkDetector(b *testing.B) {
	d := newDetector(b, newModel(b))
	c := loadClips(b)[0]
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := d.Probability(c.window(i)); err != nil {
			b.Fatal(err)
		}
		i = (i + 1) % len(c.want)
	}
}

func BenchmarkSpectrum(b *testing.B) {
	s := newSpectrum()
	var w window
	var out features
	b.ReportAllocs()
	for b.Loop() {
		s.magnitudes(&w, &out)
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newModel(b)
	}
}
