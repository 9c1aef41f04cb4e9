package pocketsphinx

import (
	"math"
	"runtime"
	"testing"

	"xiaozhi/internal/speechtest"
)

func TestPitchOf(t *testing.T) {
	for _, hz := range []float64{85, 120, 159, 200, 260, 350} {
		if got := pitchOf(waveOf(0.5, notes(hz))); math.Abs(got-hz) > 0.06*hz {
			t.Errorf("pitch of %.0f Hz is %.0f", hz, got)
		}
	}
	if got := pitchOf(inRoom(nil)); got != 0 {
		t.Errorf("pitch of a quiet room is %.0f", got)
	}
	for _, short := range [][]int16{nil, make([]int16, 3), make([]int16, 500), make([]int16, sampleRate)} {
		if got := pitchOf(short); got != 0 {
			t.Errorf("pitch of %d samples of nothing is %.0f", len(short), got)
		}
	}
}

// TestPitchTellsVoices checks that a woman's voice is high and a man's is low.
func TestPitchTellsVoices(t *testing.T) {
	if got := pitchOf(promptNamed(t, speechtest.Prompts, "vm-msgsaved").PCM()); got < highPitch {
		t.Errorf("a woman's pitch is %.0f Hz", got)
	}
	if got := pitchOf(promptNamed(t, speechtest.Others, "goforward.raw").PCM()); got == 0 || got > highPitch {
		t.Errorf("a man's pitch is %.0f Hz", got)
	}
}

// Every decoder of a process moves the frequencies of high voices: the library forgets to after the first.
func TestEachDecoderMovesHighVoices(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("one processor has one decoder")
	}
	var means [2]cepstrum
	pcm := waveOf(0.5, notes(300, 900, 2100))
	first, second := borrowDecoder(t), borrowDecoder(t)
	for i, d := range []*decoder{first, second} {
		var low, high cepstralMean
		d.low.begin()
		low.hear(d.low.add(nil, pcm)...)
		d.high.begin()
		high.hear(d.high.add(nil, pcm)...)
		if low.sum == high.sum {
			t.Errorf("decoder %d hears high voices as low ones", i)
		}
		means[i] = high.sum
	}
	if means[0] != means[1] {
		t.Error("two decoders hear differently")
	}
}
