package servicetest

import (
	_ "embed"
	"encoding/binary"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Words is what every fake recogniser hears in sound that is not silent: a question in
// Chinese, a blank, and a few words of English that begin with "and".
//
//go:embed words.txt
var Words string

// Heard gives the words that a recogniser has after so many samples at a rate: the more
// it has heard, the more of [Words], and all of them after a second. Sound of zeros
// only is nothing: the fake counts what is [Loud].
func Heard(samples, rate int) string {
	runes := []rune(Words)
	n := min(len(runes), len(runes)*samples/max(rate, 1))
	return strings.TrimSpace(string(runes[:n]))
}

// Halves are [Words] as two sentences, for a fake that gives them in [Parts].
func Halves() (first, second string) {
	cut := strings.Index(Words, " and")
	return Words[:cut], Words[cut+1:]
}

// Loud says whether 16 bit little-endian sound holds anything but silence.
func Loud(pcm []byte) bool {
	for i := 0; i+1 < len(pcm); i += 2 {
		if v := int16(binary.LittleEndian.Uint16(pcm[i:])); v > 64 || v < -64 {
			return true
		}
	}
	return false
}

// PerRune is the length of a fake voice's sound for each rune of the text.
const PerRune = 40 * time.Millisecond

// Speech is the sound of a text in every fake voice: a tone of 440 Hz, 16 bit
// little-endian mono, [PerRune] for each rune.
func Speech(text string, rate int) []byte {
	n := int(PerRune.Seconds()*float64(rate)) * utf8.RuneCountInString(text)
	out := make([]byte, 0, 2*n)
	for i := range n {
		v := int16(12000 * math.Sin(2*math.Pi*440*float64(i)/float64(rate)))
		out = binary.LittleEndian.AppendUint16(out, uint16(v))
	}
	return out
}

// WAV is the header of a WAV file of 16 bit mono sound; size is that of the sound, or
// what a server that streams writes there, such as 0 or 0xFFFFFFFF.
func WAV(rate int, size uint32) []byte {
	h := []byte("RIFF")
	h = binary.LittleEndian.AppendUint32(h, size+36)
	h = append(h, "WAVEfmt "...)
	h = binary.LittleEndian.AppendUint32(h, 16)
	h = binary.LittleEndian.AppendUint16(h, 1)
	h = binary.LittleEndian.AppendUint16(h, 1)
	h = binary.LittleEndian.AppendUint32(h, uint32(rate))
	h = binary.LittleEndian.AppendUint32(h, uint32(rate*2))
	h = binary.LittleEndian.AppendUint16(h, 2)
	h = binary.LittleEndian.AppendUint16(h, 16)
	h = append(h, "data"...)
	return binary.LittleEndian.AppendUint32(h, size)
}

// Pieces cuts bytes into pieces of n.
func Pieces(b []byte, n int) [][]byte {
	var out [][]byte
	for len(b) > 0 {
		k := min(n, len(b))
		out = append(out, b[:k])
		b = b[k:]
	}
	return out
}
