package voices

import (
	"math"
	"slices"
	"time"

	"xiaozhi/providers"
)

const (
	frame   = providers.VoiceRate / 50 // samples: 20 ms
	margin  = 6                        // frames that are kept around what is said
	dynamic = 20                       // what is so many times softer than the loudest is no voice
	least   = 60                       // the same in any case: -55 dB
	quiet   = 200                      // voices whose loudest parts are softer are too quiet: -44 dB

	// MinSaid is how much has to be said, pauses apart, to know a voice by it.
	MinSaid = 800 * time.Millisecond
	// MinEnrol is how much has to be said to enrol a voice.
	MinEnrol = 2 * time.Second
	// mostHeard is how much sound is looked at.
	mostHeard = 8 * time.Second
)

// spoken returns the part of sound in which somebody speaks, and how long they do, pauses apart. The error is [ErrShort] or
// [ErrQuiet].
func spoken(pcm []int16, want time.Duration) (part []int16, said time.Duration, err error) {
	levels := make([]float64, 0, len(pcm)/frame)
	for at := 0; at+frame <= len(pcm); at += frame {
		sum := 0.0
		for _, s := range pcm[at : at+frame] {
			sum += float64(s) * float64(s)
		}
		levels = append(levels, math.Sqrt(sum/frame))
	}
	if len(levels) == 0 {
		return nil, 0, ErrShort
	}
	sorted := slices.Sorted(slices.Values(levels))
	loud := sorted[len(sorted)*19/20]
	first, last, n := -1, -1, 0
	for i, level := range levels {
		if level >= max(least, loud/dynamic) {
			if last, n = i, n+1; first < 0 {
				first = i
			}
		}
	}
	said = time.Duration(n) * frame * time.Second / providers.VoiceRate
	switch {
	case loud < quiet:
		return nil, said, ErrQuiet
	case said < want:
		return nil, said, ErrShort
	}
	from, to := max(0, first-margin)*frame, min(len(levels), last+1+margin)*frame
	return pcm[from:to], said, nil
}

// atMost returns the first part of sound, of that length at most.
func atMost(pcm []int16, d time.Duration) []int16 {
	return pcm[:min(len(pcm), int(d*providers.VoiceRate/time.Second))]
}
