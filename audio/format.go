// Package audio holds the sound formats and the small parts that sound passes through: the Opus
// codec, the resampler, endpointing, pacing and levels. Below it are the containers of sound
// (file), music (track) and the echo of a device's own loudspeaker (echo).
//
// PCM is always signed 16 bit, mono, in []int16. Rates are in Hz. Nothing here reads a clock.
package audio

import (
	"slices"
	"time"
)

// Format is the shape of a mono stream: sample rate in Hz and the length of one frame.
type Format struct {
	Rate  int           // Hz
	Frame time.Duration // length of one Opus packet
}

// Recognition is the format of the recognisers and the voice detector: 16 kHz, 60 ms.
var Recognition = Format{Rate: 16000, Frame: 60 * time.Millisecond}

// Reply is the format of replies unless it is configured: 24 kHz, 60 ms
// (docs/protocol.md 4.2: every client plays it).
var Reply = Format{Rate: 24000, Frame: 60 * time.Millisecond}

// Samples returns the number of samples in one frame.
func (f Format) Samples() int {
	return int(int64(f.Rate) * int64(f.Frame) / int64(time.Second))
}

// Duration returns the length of n samples at this format's rate.
func (f Format) Duration(n int) time.Duration {
	if f.Rate <= 0 {
		return 0
	}
	return time.Duration(int64(n) * int64(time.Second) / int64(f.Rate))
}

// Grow makes room for n samples behind those in pcm, at least a second of speech, and doubles
// what there is: append alone leaves five times a long utterance's size as garbage.
func Grow(pcm []int16, n int) []int16 {
	if cap(pcm)-len(pcm) >= n {
		return pcm
	}
	return slices.Grow(pcm, max(n, len(pcm), Recognition.Rate))
}
