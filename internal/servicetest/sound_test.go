package servicetest

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"xiaozhi/audio/file"
)

// level is the root mean square of samples.
func level(pcm []int16) float64 {
	var sum float64
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(len(pcm), 1)))
}

// all reads the samples of a file.
func all(t *testing.T, r interface{ Read([]int16) (int, error) }) []int16 {
	t.Helper()
	var pcm []int16
	for buf := make([]int16, 1<<12); ; {
		n, err := r.Read(buf)
		pcm = append(pcm, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return pcm
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

const sentence = "a sentence of some length, which is longer than the tone"

func TestMP3HoldsTheSound(t *testing.T) {
	r, err := file.NewMP3Reader(bytes.NewReader(MP3(sentence)))
	if err != nil {
		t.Fatal(err)
	}
	pcm := all(t, r)
	if want := len(Speech(sentence, 24000)) / 2; r.Rate() != 24000 || len(pcm) < want || len(pcm) > want+4*576 || level(pcm) < 3000 {
		t.Errorf("%d samples of %d Hz at a level of %.0f, want %d and no more than 4 frames", len(pcm), r.Rate(), level(pcm), want)
	}
}

func TestOpusHoldsTheSound(t *testing.T) {
	r, err := file.NewOpusReader(bytes.NewReader(OggOpus(t, sentence, 24000)))
	if err != nil {
		t.Fatal(err)
	}
	pcm := all(t, r)
	if want := len(Speech(sentence, 48000)) / 2; len(pcm) != want || level(pcm) < 3000 {
		t.Errorf("%d samples at a level of %.0f, want %d", len(pcm), level(pcm), want)
	}
}
