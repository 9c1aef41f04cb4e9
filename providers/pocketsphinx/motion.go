package pocketsphinx

import (
	"math"
	"slices"
)

const (
	// motionGap is the time in which speech becomes another sound, in frames: 80 ms.
	motionGap = 8
	// loudPart is how much less than the loudest frame those may have in the first coefficient that count.
	loudPart = 25
	// fewMoved is the number of frames that say nothing about motion.
	fewMoved = 10
)

// level tells how long a sound has been quiet.
type level struct {
	loudest float32 // first coefficient
	quiet   int     // frames since it was last loud
}

// quietPart is how much less than the loudest frame quiet ones have in the first coefficient, about 10 dB.
const quietPart = 12

// hear adds a frame of which no mean was taken.
func (l *level) hear(f cepstrum) {
	if l.loudest = max(l.loudest, f[0]); f[0] < l.loudest-quietPart {
		l.quiet++
	} else {
		l.quiet = 0
	}
}

// voiceIn returns the first frame that is loud beside the others, as those of a voice
// in a quiet room are; 0 of no frames.
func voiceIn(frames []cepstrum) int {
	loudest := loudestOf(frames)
	return max(0, slices.IndexFunc(frames, func(f cepstrum) bool { return f[0] >= loudest-loudPart }))
}

// loudestOf returns the first coefficient of the loudest frame.
func loudestOf(frames []cepstrum) (loudest float32) {
	for i, f := range frames {
		if i == 0 || f[0] > loudest {
			loudest = f[0]
		}
	}
	return loudest
}

// motionOf tells how much the loud part of a sound changes its colour within
// 80 ms, as the mean distance of two frames; 0 if there is too little of it. A mouth moves
// all the time and only so fast: speech has 36 to 80, tones nearly nothing, most music
// 20 to 45, a scream, whose pitch glides through the bands, over 80.
func motionOf(frames []cepstrum) float64 {
	loudest := loudestOf(frames)
	var sum float64
	n := 0
	for i := motionGap; i < len(frames); i++ {
		before, after := frames[i-motionGap], frames[i]
		if min(before[0], after[0]) < loudest-loudPart {
			continue
		}
		var square float64
		for k := 1; k < cepstraSize; k++ {
			d := float64(after[k] - before[k])
			square += d * d
		}
		sum += math.Sqrt(square)
		n++
	}
	if n < fewMoved {
		return 0
	}
	return sum / float64(n)
}
