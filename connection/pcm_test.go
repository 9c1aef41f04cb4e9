package connection

import (
	"bytes"
	"testing"

	"xiaozhi/audio"
)

// Whatever is written as PCM becomes whole packets of 60 ms, or an error, and nothing is heard twice.
func FuzzPCMEncode(f *testing.F) {
	f.Add(make([]byte, pcmUp), 1)
	f.Add(bytes.Repeat([]byte{0x12, 0xf4}, 333), 3)
	f.Add([]byte{1}, 1)
	f.Add([]byte{}, 5)
	f.Add(make([]byte, pcmMost+2), 1)
	f.Fuzz(func(t *testing.T, message []byte, times int) {
		codec, err := newPCMCodec()
		if err != nil {
			t.Fatal(err)
		}
		decoder, err := audio.NewDecoder(audio.Recognition.Rate)
		if err != nil {
			t.Fatal(err)
		}
		room := make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
		given, heard := 0, 0
		for range max(0, times%8) {
			err := codec.encode(message, func(packet []byte) {
				n, err := decoder.Decode(packet, room)
				if err != nil {
					t.Fatal(err)
				}
				heard += n
			})
			if bad := len(message)%2 != 0 || len(message) > pcmMost; bad != (err != nil) {
				t.Fatalf("%d bytes: %v", len(message), err)
			} else if bad {
				return
			}
			given += len(message) / 2
		}
		if frame := audio.Recognition.Samples(); heard != given/frame*frame {
			t.Errorf("%d samples were given, %d heard", given, heard)
		}
	})
}
