package alarm

import (
	"iter"
	"math"

	"xiaozhi/providers"
)

// chime is the sound of an alarm: three strokes of a bell, made here.
func chime() iter.Seq2[providers.Sound, error] {
	const rate, stroke = 16000, 0.7 // Hz, s
	return func(yield func(providers.Sound, error) bool) {
		pcm := make([]int16, int(rate*stroke))
		for i := range pcm {
			at := float64(i) / rate
			fade := math.Exp(-5*at) * min(1, at*200)
			v := math.Sin(2*math.Pi*880*at) + 0.5*math.Sin(2*math.Pi*1320*at) + 0.25*math.Sin(2*math.Pi*2217*at)
			pcm[i] = int16(7000 * fade * v)
		}
		for range 3 {
			if !yield(providers.Sound{Rate: rate, PCM: pcm}, nil) {
				return
			}
		}
	}
}
