package record

import (
	"fmt"
	"hash/fnv"
	"math"

	"xiaozhi/audio"
)

// Codec is a mark of the Opus library that is at work: what it makes of a little
// known sound. Only where the marks of a recording and of its replay are the same
// can packets be the same, byte for byte.
func Codec() string {
	enc, err := audio.NewEncoder(audio.Reply)
	if err != nil {
		return ""
	}
	dec, err := audio.NewDecoder(audio.Recognition.Rate)
	if err != nil {
		return ""
	}
	sum := fnv.New64a()
	pcm, packet := make([]int16, audio.Reply.Samples()), make([]byte, audio.MaxPacket)
	heard := make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
	phase, noise := 0.0, uint32(1)
	for frame := range 5 {
		for i := range pcm {
			phase += (200 + 500*float64(frame) + float64(i)) / float64(audio.Reply.Rate)
			noise = noise*1664525 + 1013904223
			pcm[i] = int16(8000*math.Sin(2*math.Pi*phase)) + int16(noise>>22)
		}
		n, err := enc.Encode(pcm, packet)
		if err != nil {
			return ""
		}
		sum.Write(packet[:n])
		if n, err = dec.Decode(packet[:n], heard); err != nil {
			return ""
		}
		for _, s := range heard[:n] {
			sum.Write([]byte{byte(s), byte(s >> 8)})
		}
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}
