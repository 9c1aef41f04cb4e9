package recognition

import "encoding/binary"

// Bytes is sound as most services take it: samples of 16 bit, little endian.
func Bytes(pcm []int16) []byte {
	out := make([]byte, 0, 2*len(pcm))
	for _, v := range pcm {
		out = binary.LittleEndian.AppendUint16(out, uint16(v))
	}
	return out
}
