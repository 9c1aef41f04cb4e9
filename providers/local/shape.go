package local

import (
	"time"

	"xiaozhi/audio"
)

const (
	quiet    = 260                     // amplitude that counts as silence, about -42 dBFS
	leadKept = 40 * time.Millisecond   // silence left before the first sound: weak consonants live there
	tailKept = 80 * time.Millisecond   // silence left after the last sound
	knee     = 24000                   // amplitude above which the limiter bends
	ceiling  = 32000                   // amplitude that is never passed
	slack    = float32(ceiling - knee) // room of the limiter
)

// shaper brings one unit's sound to its loudness and cuts the silence around
// it. What it gives is good until the next call. It is for one goroutine.
type shaper struct {
	gain       float32
	lead, tail int // samples
	rate       int
	resampler  *audio.Resampler // nil: none needed
	started    bool
	held       []int16 // quiet samples that may turn out to be the end
	out, wide  []int16 // reused results
}

func newShaper(of voiceTraits) *shaper {
	lead, tail := audio.Format{Rate: of.rate, Frame: leadKept}, audio.Format{Rate: of.rate, Frame: tailKept}
	return &shaper{gain: of.gain, rate: of.rate, lead: lead.Samples(), tail: tail.Samples()}
}

// write takes a piece and gives what can be played of all so far.
func (s *shaper) write(pcm []int16) []int16 {
	s.out = s.out[:0]
	for _, x := range pcm {
		y := limit(float32(x) * s.gain)
		if y > -quiet && y < quiet {
			s.held = append(s.held, y)
			if !s.started && len(s.held) >= 4*s.lead {
				s.held = append(s.held[:0], s.held[len(s.held)-s.lead:]...)
			}
			continue
		}
		if !s.started {
			s.started = true
			s.held = s.held[max(0, len(s.held)-s.lead):]
		}
		s.out = append(s.out, s.held...)
		s.held = s.held[:0]
		s.out = append(s.out, y)
	}
	return s.convert(s.out)
}

// finish returns the tail, and as much silence as the pause asks for.
func (s *shaper) finish(pause time.Duration) []int16 {
	if !s.started {
		return nil
	}
	s.out = append(s.out[:0], s.held[:min(len(s.held), s.tail)]...)
	want := int(pause * time.Duration(s.rate) / time.Second)
	for len(s.out) < want {
		s.out = append(s.out, 0)
	}
	out := s.convert(s.out)
	if s.resampler != nil {
		s.wide = s.resampler.Flush(out)
		return s.wide
	}
	return out
}

func (s *shaper) convert(pcm []int16) []int16 {
	if s.resampler == nil {
		return pcm
	}
	s.wide = s.resampler.Write(s.wide[:0], pcm)
	return s.wide
}

// limit bends what is louder than the knee so that it stays below the ceiling.
func limit(x float32) int16 {
	switch {
	case x > knee:
		over := x - knee
		return int16(knee + slack*over/(over+slack))
	case x < -knee:
		over := -x - knee
		return int16(-knee - slack*over/(over+slack))
	}
	return int16(x)
}
