package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"xiaozhi/audio/internal/dsp"
)

// scaled is sound by so many dB louder.
func scaled(pcm []int16, db float64) []int16 {
	out := make([]int16, len(pcm))
	for i, v := range pcm {
		out[i] = dsp.Round(float32(float64(v) * decibels(db)))
	}
	return out
}

// loudnessOf measures all of it.
func loudnessOf(pcm []int16) float64 {
	m := NewMeter(24000)
	m.Add(pcm)
	return m.Loudness()
}

func dbfs(amplitude float64) float64 { return 20 * math.Log10(amplitude/32768) }

func TestMeterGates(t *testing.T) {
	voice := tone(24000, 440, 3000, 0, 24000) // 1 s, RMS 3 dB below its amplitude
	want := dbfs(3000) - 3.01
	for name, pcm := range map[string][]int16{
		"alone":            voice,
		"among silence":    append(append(make([]int16, 48000), voice...), make([]int16, 48000)...),
		"among faint hiss": append(tone(24000, 3000, 30, 0, 72000), voice...),
		"among breath":     append(tone(24000, 3000, 300, 0, 72000), voice...), // 20 dB below
	} {
		if got := loudnessOf(pcm); math.Abs(got-want) > 0.8 {
			t.Errorf("%s: %.1f dBFS, want %.1f", name, got, want)
		}
	}
	m := NewMeter(24000)
	if m.Gain() != 0 || m.Heard() != 0 || !math.IsInf(m.Loudness(), -1) {
		t.Error("a new meter knows something")
	}
	if m.Add(make([]int16, 48000)); m.Gain() != 0 || m.Heard() != 0 {
		t.Error("silence was measured")
	}
	for range 200 { // old sound fades: the voice was changed
		m.Add(scaled(voice, 10))
	}
	for range 200 {
		m.Add(voice)
	}
	if got := m.Loudness(); math.Abs(got-want) > 1 {
		t.Errorf("after a minute of the new voice: %.1f dBFS, want %.1f", got, want)
	}
}

// level runs sound through as the server does: the meter hears a frame before
// it is played.
func level(m *Meter, l *Leveller, pcm []int16) []int16 {
	out := append([]int16(nil), pcm...)
	l.Begin()
	for i := 0; i < len(out); i += 1440 {
		frame := out[i:min(i+1440, len(out))]
		m.Add(frame)
		l.Apply(frame, m.Gain())
	}
	return out
}

// TestVoicesComeToOneLoudness levels voices from -32 to -8 dBFS. The second
// sentence of each is right from its first syllable.
func TestVoicesComeToOneLoudness(t *testing.T) {
	voice := speechLike(24000, 3*24000)
	own := loudnessOf(voice)
	levels := NewLevels()
	for _, loud := range []float64{-32, -26, -20, -14, -8} {
		name := fmt.Sprint(loud)
		sound := scaled(voice, loud-own)
		for sentence := range 3 {
			m := levels.Meter(name, 24000)
			out := level(&m, NewLeveller(24000), sound)
			levels.Keep(name, m)
			if got := loudnessOf(out); sentence > 0 && math.Abs(got+20) > 1.5 {
				t.Errorf("a voice of %v dBFS, sentence %d: %.1f dBFS", loud, sentence, got)
			}
			if sentence == 0 {
				continue
			}
			// Steady: each half second has the gain of the others.
			for i := 0; i+12000 <= len(out); i += 12000 {
				gain := 20 * math.Log10(rms(out[i:i+12000])/rms(sound[i:i+12000]))
				if math.Abs(gain-(-20-loud)) > 1.5 {
					t.Errorf("a voice of %v dBFS, sentence %d, sample %d: gain %.1f dB", loud, sentence, i, gain)
				}
			}
		}
	}
}

func TestGainIsBoundedAndSlow(t *testing.T) {
	faint := scaled(speechLike(24000, 6*24000), -30)
	m := NewMeter(24000)
	m.Add(faint)
	if m.Gain() != mostGain {
		t.Errorf("gain %.1f dB for a voice of %.1f dBFS", m.Gain(), m.Loudness())
	}
	l := NewLeveller(24000)
	frame := tone(24000, 440, 1000, 0, 1440)
	l.Apply(append([]int16(nil), frame...), 0)
	before := 0.0
	for i := range 60 {
		out := append([]int16(nil), frame...)
		l.Apply(out, 12)
		gain := 20 * math.Log10(rms(out)/rms(frame))
		if step := gain - before; step > levelSlew*0.06+0.05 || step < -0.05 {
			t.Fatalf("frame %d: the gain moves by %.2f dB", i, step)
		}
		before = gain
	}
	if math.Abs(before-12) > 0.1 {
		t.Errorf("the gain reaches %.1f dB", before)
	}
}

// TestLevellerNoClipping plays loud voices that are made louder still: no sample
// is beyond the ceiling, no top is flat, and the shape of the wave stays.
func TestLevellerNoClipping(t *testing.T) {
	for _, amplitude := range []float64{9000, 20000, 32000} {
		l := NewLeveller(24000)
		in := tone(24000, 200, amplitude, 0, 24000)
		for i := range 4800 {
			in[i] /= 8 // a soft beginning, so that the peak comes as a surprise
		}
		out := append([]int16(nil), in...)
		for i := 0; i < len(out); i += 1440 {
			l.Apply(out[i:min(i+1440, len(out))], 12)
		}
		flat := 0
		for i := 1; i < len(out); i++ {
			if math.Abs(float64(out[i])) > limitCeiling+1 {
				t.Fatalf("amplitude %.0f, sample %d is %d", amplitude, i, out[i])
			}
			if out[i] == out[i-1] && math.Abs(float64(out[i])) > 20000 {
				flat++
			}
		}
		if flat > len(out)/2000 {
			t.Errorf("amplitude %.0f: %d samples of flat tops", amplitude, flat)
		}
		if purity := harmonics(out[9600:19200], 24000, 200); purity < 30 {
			t.Errorf("amplitude %.0f: harmonics only %.0f dB below the tone", amplitude, purity)
		}
	}
}

// harmonics is by how many dB the tone is stronger than its overtones.
func harmonics(pcm []int16, rate int, hz float64) float64 {
	power := func(hz float64) float64 {
		re, im := 0.0, 0.0
		for i, v := range pcm {
			a := 2 * math.Pi * hz * float64(i) / float64(rate)
			re, im = re+float64(v)*math.Cos(a), im+float64(v)*math.Sin(a)
		}
		return re*re + im*im
	}
	over := 0.0
	for k := 2.0; k < 10; k++ {
		over += power(hz * k)
	}
	return 10 * math.Log10(power(hz)/over)
}

func TestRightLoudnessIsLeftAlone(t *testing.T) {
	l := NewLeveller(24000)
	random := rand.New(rand.NewPCG(1, 1))
	frame := make([]int16, 1440)
	for i := range frame {
		frame[i] = int16(random.Uint32())
	}
	out := append([]int16(nil), frame...)
	for range 10 {
		if l.Apply(out, 0); !equal16(out, frame) {
			t.Fatal("sound that needs nothing was changed")
		}
	}
	l.Apply(nil, 5)
}

func TestLevelsRemember(t *testing.T) {
	levels := NewLevels()
	m := levels.Meter("a", 24000)
	m.Add(tone(24000, 440, 3000, 0, 24000))
	levels.Keep("a", m)
	again := levels.Meter("a", 24000)
	if again.Loudness() != m.Loudness() {
		t.Error("the voice was forgotten")
	}
	if other := levels.Meter("b", 24000); other.Heard() != 0 {
		t.Error("another voice is known")
	}
	if other := levels.Meter("a", 16000); other.Heard() != 0 {
		t.Error("the meter of another rate")
	}
	for i := range 3 * maxVoices {
		levels.Keep(strings.Repeat("x", i), m)
	}
	if n := levels.meters.Len(); n > maxVoices {
		t.Errorf("%d voices are kept", n)
	}
}

func TestLevellingDoesNotAllocate(t *testing.T) {
	m, l := NewMeter(24000), NewLeveller(24000)
	frame := tone(24000, 440, 9000, 0, 1440)
	if n := testing.AllocsPerRun(50, func() {
		m.Add(frame)
		l.Apply(frame, m.Gain())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLevel(b *testing.B) {
	m, l := NewMeter(24000), NewLeveller(24000)
	frame, buf := tone(24000, 440, 2000, 0, 1440), make([]int16, 1440)
	b.ReportAllocs()
	for b.Loop() {
		copy(buf, frame)
		m.Add(buf)
		l.Apply(buf, m.Gain())
	}
}
