package pocketsphinx

import (
	"math"
	"slices"
	"testing"

	"xiaozhi/internal/speechtest"
	"xiaozhi/internal/testall"
)

// waveOf makes seconds of sound: at gives its value, -1 to 1, at a time in seconds.
func waveOf(seconds float64, at func(t float64) float64) []int16 {
	pcm := make([]int16, int(seconds*sampleRate))
	for i := range pcm {
		pcm[i] = int16(9000 * at(float64(i)/sampleRate))
	}
	return pcm
}

// notes are tones of these frequencies, each with two overtones.
func notes(hz ...float64) func(t float64) float64 {
	return func(t float64) (sum float64) {
		for _, f := range hz {
			for k := 1.0; k < 4; k++ {
				sum += math.Sin(2*math.Pi*f*k*t) / k
			}
		}
		return sum / 6
	}
}

// struck lets a sound die away and begins it again, as a piano does, twice a second.
func struck(sound func(t float64) float64) func(t float64) float64 {
	return func(t float64) float64 { return sound(t) * math.Exp(-3*math.Mod(t, 0.5)) }
}

// scream is a voice without a mouth that moves: its pitch wavers, its colour stays.
func scream(hz float64) func(t float64) float64 {
	return func(t float64) (sum float64) {
		phase := 2 * math.Pi * hz * (t + 0.25/(2*math.Pi*1.3)*(1-math.Cos(2*math.Pi*1.3*t)))
		for k, part := range []float64{0.5, 0.8, 0.7, 0.3, 0.2} {
			sum += part / 2 * math.Sin(float64(k+1)*phase)
		}
		return sum
	}
}

func TestNoWordsInNoise(t *testing.T) {
	t.Parallel()
	d := borrowDecoder(t)
	few := []string{"a tone", "a struck chord", "a scream"}
	for name, pcm := range map[string][]int16{
		"a low tone":     waveOf(1, func(t float64) float64 { return math.Sin(2 * math.Pi * 220 * t) }),
		"a tone":         waveOf(1, func(t float64) float64 { return math.Sin(2 * math.Pi * 1000 * t) }),
		"a chord":        waveOf(1, notes(261, 329, 392)),
		"a struck chord": waveOf(1, struck(notes(220, 261, 329))),
		"a scream":       waveOf(1, scream(700)),
		"a high scream":  waveOf(1, scream(1200)),
	} {
		if !testall.Running() && !slices.Contains(few, name) {
			continue
		}
		m := hearAll(t, d, inRoom(pcm), nil, func() {})
		for _, hint := range []string{"", "zh"} {
			if v := m.judge(hint); v.text != "" && !v.rejected {
				t.Errorf("%s, hint %q: heard %q, doubt %.1f", name, hint, v.text, v.doubt)
			}
		}
	}
}

func TestMotionOf(t *testing.T) {
	t.Parallel()
	speech := measured(t, promptNamed(t, speechtest.Prompts, "vm-msgsaved")).motion
	d := borrowDecoder(t)
	if speech < leastMotion || speech > mostMotion {
		t.Errorf("motion of speech %.1f", speech)
	}
	if tone := hearAll(t, d, inRoom(waveOf(0.5, notes(1000))), nil, func() {}).motion; tone > speech/2 {
		t.Errorf("motion of a tone %.1f, of speech %.1f", tone, speech)
	}
	if got := motionOf(make([]cepstrum, motionGap+fewMoved-1)); got != 0 {
		t.Errorf("motion of too little sound %.1f", got)
	}
}
