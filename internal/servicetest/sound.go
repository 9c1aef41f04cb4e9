package servicetest

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
)

// tone is a tone of 440 Hz as MP3: 24 kHz, mono, 48 kbit/s, frames of 144 bytes that need
// no other one.
//
//go:embed tone.mp3
var tone []byte

const (
	mp3Frame  = 144                   // bytes
	mp3Length = 24 * time.Millisecond // of a frame
	mp3Lag    = 2                     // frames that a decoder needs before the sound is whole
)

// MP3 is the sound of a text as MP3, 24 kHz mono, a little longer than [Speech].
func MP3(text string) []byte {
	frames := int(PerRune*time.Duration(utf8.RuneCountInString(text))/mp3Length) + mp3Lag
	return bytes.Repeat(tone, 1+frames*mp3Frame/len(tone))[:frames*mp3Frame]
}

// Packets are the sound of a text as Opus packets of a length, from a rate of 8, 12, 16, 24 or 48 kHz.
func Packets(t testing.TB, text string, rate int, each time.Duration) [][]byte {
	t.Helper()
	format := audio.Format{Rate: rate, Frame: each}
	enc, err := audio.NewEncoder(format)
	if err != nil {
		t.Fatal(err)
	}
	pcm := Samples(Speech(text, rate))
	var out [][]byte
	packet := make([]byte, audio.MaxPacket)
	for n := format.Samples(); len(pcm) > 0; pcm = pcm[min(n, len(pcm)):] {
		frame := make([]int16, n)
		copy(frame, pcm)
		size, err := enc.Encode(frame, packet)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Clone(packet[:size]))
	}
	return out
}

// OggOpus is the sound of a text as an Ogg Opus file with packets of 20 ms.
func OggOpus(t testing.TB, text string, rate int) []byte {
	t.Helper()
	var all audio.Packets
	for _, p := range Packets(t, text, rate, 20*time.Millisecond) {
		all.Add(p)
	}
	var out bytes.Buffer
	if err := file.WriteOpus(&out, &all, rate); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Samples are the samples of 16 bit little-endian sound.
func Samples(pcm []byte) []int16 {
	out := make([]int16, len(pcm)/2)
	for i := range out {
		out[i] = int16(binary.LittleEndian.Uint16(pcm[2*i:]))
	}
	return out
}
