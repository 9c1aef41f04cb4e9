package audio

import (
	"slices"
	"testing"
)

// largestStep is the largest step from one sample to the next.
func largestStep(pcm []int16) (worst int) {
	for i := 1; i < len(pcm); i++ {
		worst = max(worst, int(pcm[i])-int(pcm[i-1]), int(pcm[i-1])-int(pcm[i]))
	}
	return worst
}

// constant is n samples of one value: the worst edge there can be.
func constant(v int16, n int) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = v
	}
	return pcm
}

func TestFadeEdges(t *testing.T) {
	for _, v := range []int16{8000, -8000, 32767, -32768} {
		pcm := constant(v, 1440)
		FadeIn(pcm, 24000)
		ramp := make([]int16, FadeSamples(24000))
		RampOut(ramp, v)
		if got, most := largestStep(slices.Concat([]int16{0}, pcm, ramp, []int16{0})), max(int(v), -int(v))/60; got > most {
			t.Errorf("%d: a step of %d, want at most %d", v, got, most)
		}
		if pcm[FadeSamples(24000)] != v || pcm[1439] != v {
			t.Errorf("%d: what is no edge was changed", v)
		}
	}
}

func TestSoftBeginningsAreLeftAlone(t *testing.T) {
	pcm := tone(24000, 440, 10000, 0, 1440) // begins at zero
	want := tone(24000, 440, 10000, 0, 1440)
	FadeIn(pcm, 24000)
	for i := range pcm {
		if pcm[i] != want[i] {
			t.Fatalf("sample %d was changed", i)
		}
	}
	FadeIn(nil, 24000)
	short := []int16{9000, 9000}
	FadeIn(short, 24000)
	if short[0] > 2000 {
		t.Errorf("a piece shorter than the fade begins with %d", short[0])
	}
	for name, c := range map[string]struct {
		pcm  []int16
		want bool
	}{
		"nothing":               {nil, false},
		"silence":               {make([]int16, 20), false},
		"too soft to be heard":  {constant(-159, 20), false},
		"soft":                  {constant(-160, 20), true},
		"loud":                  {constant(32767, 20), true},
		"a tone at its zero":    {tone(24000, 440, 12000, 0, 2400), false}, // 44 periods: the next sample would be 0
		"a tone at its top":     {tone(24000, 440, 12000, 0, 2400+13), true},
		"a hiss":                {[]int16{900, -800, 700, -900, 1000, -700}, false},
		"one sample of silence": {[]int16{0}, false},
	} {
		if got := EndsAbruptly(c.pcm); got != c.want {
			t.Errorf("%s: abrupt %v", name, got)
		}
	}
}
