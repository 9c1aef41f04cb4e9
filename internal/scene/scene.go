// Package scene holds the parts of scripted conversations that tests of several packages share.
package scene

import (
	"context"
	"iter"
	"math"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
)

// Voiced returns sound with the harmonics and the rhythm of a voice, at most of that amplitude.
func Voiced(rate int, length time.Duration, amplitude float64) []int16 {
	pcm := make([]int16, audio.Format{Rate: rate, Frame: length}.Samples())
	for i := range pcm {
		at := float64(i) / float64(rate)
		v := 0.0
		for k := 1.0; k <= 8; k++ {
			v += math.Sin(2*math.Pi*140*k*at) / k
		}
		pcm[i] = int16(amplitude / 2 * (0.5 - 0.5*math.Cos(2*math.Pi*4*at)) * v)
	}
	return pcm
}

// TTS is a voice that answers each text with what Sound gives. The fields are set
// before it is used, and Asked is read after.
type TTS struct {
	Label string // its name
	Sound func(text string) []providers.Sound
	Delay time.Duration // before the sound
	Err   error         // after it

	mu    sync.Mutex
	Asked []string // the texts
}

// Name returns Label.
func (s *TTS) Name() string { return s.Label }

// Synthesize gives the sound of a text.
func (s *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		s.mu.Lock()
		s.Asked = append(s.Asked, req.Text)
		s.mu.Unlock()
		if s.Delay > 0 {
			timer := time.NewTimer(s.Delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				yield(providers.Sound{}, ctx.Err())
				return
			}
		}
		for _, sound := range s.Sound(req.Text) {
			if !yield(sound, nil) {
				return
			}
		}
		if s.Err != nil {
			yield(providers.Sound{}, s.Err)
		}
	}
}
