package e2e

import (
	"bytes"
	wire "encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/speechtest"
)

const (
	loudnessOf = speechtest.Rate / 50 // samples of one value
	alikeFrom  = 0.45                 // what neither silence nor a tone reaches, and a sentence with gaps does
)

// knowing answers with the words of a clip where it is in what came; else it says how unlike that is.
func knowing(clip speechtest.Clip) openaitest.Script {
	want := loudness(clip.PCM())
	return func(r *openaitest.Request) openaitest.Reply {
		text := clip.Text
		if likeness := alike(loudness(samplesOf(r.File)), want); likeness < alikeFrom {
			text = fmt.Sprintf("nothing known, %.2f", likeness)
		}
		said, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			return openaitest.Failure(500, err.Error())
		}
		return openaitest.JSON(200, string(said))
	}
}

// samplesOf reads a WAV file of one channel.
func samplesOf(wav []byte) []int16 {
	_, data, found := bytes.Cut(wav, []byte("data"))
	if !found || len(data) < 4 {
		return nil
	}
	data = data[4:]
	pcm := make([]int16, len(data)/2)
	for i := range pcm {
		pcm[i] = int16(wire.LittleEndian.Uint16(data[2*i:]))
	}
	return pcm
}

// loudness is that of every 20 ms.
func loudness(pcm []int16) (all []float64) {
	for len(pcm) >= loudnessOf {
		sum := 0.0
		for _, v := range pcm[:loudnessOf] {
			sum += float64(v) * float64(v)
		}
		all, pcm = append(all, math.Sqrt(sum/loudnessOf)), pcm[loudnessOf:]
	}
	return all
}

// alike tells how well the loudness of a sentence fits anywhere into that of what was heard: 1 is the same.
func alike(heard, want []float64) (best float64) {
	silence := make([]float64, len(want))
	heard = append(append(silence, heard...), silence...)
	for at := range len(heard) - len(want) {
		best = max(best, correlation(heard[at:at+len(want)], want))
	}
	return best
}

// correlation is that of two rows of the same length.
func correlation(a, b []float64) float64 {
	mean := func(row []float64) (sum float64) {
		for _, v := range row {
			sum += v / float64(len(row))
		}
		return sum
	}
	ma, mb := mean(a), mean(b)
	var ab, aa, bb float64
	for i := range a {
		x, y := a[i]-ma, b[i]-mb
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// TestKnowing: the recogniser of the journeys knows its sentence with gaps, and neither silence nor a tone.
func TestKnowing(t *testing.T) {
	t.Parallel()
	clip, err := spokenClip()
	if err != nil {
		t.Fatal(err)
	}
	want := loudness(clip.PCM())
	gaps := slices.Clone(clip.PCM()[1600:])
	for at := 4000; at+900 < len(gaps); at += 6000 {
		gaps = slices.Delete(gaps, at, at+900)
	}
	if got := alike(loudness(gaps), want); got < alikeFrom {
		t.Errorf("with gaps it is alike by %.2f", got)
	}
	tone := openaitest.Tone(speechtest.Rate, 440, clip.Duration())
	for name, other := range map[string][]int16{"silence": make([]int16, len(clip.PCM())), "a tone": samplesOf(append([]byte("data1234"), tone...))} {
		if got := alike(loudness(other), want); got >= alikeFrom {
			t.Errorf("%s is alike by %.2f", name, got)
		}
	}
}
