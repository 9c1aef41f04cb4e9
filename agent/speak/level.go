package speak

import (
	"math"
	"sync/atomic"

	"xiaozhi/audio"
)

// voiceLevel brings one voice of a turn to the loudness of all. It is measured
// where its sound is made and set where it is played, so that what is measured is
// some way ahead.
type voiceLevel struct {
	key      string
	meter    audio.Meter   // of Synthesize
	wanted   atomic.Uint64 // the gain in dB as bits: what the meter says
	leveller *audio.Leveller
}

// levelID names a voice within a turn.
type levelID struct{ provider, language string }

// level is that of the voice in which a provider speaks a language; nil when
// voices are not levelled. provider is "" for the one asked.
func (s *Speaker) level(provider, language string) *voiceLevel {
	if s.o.Levels == nil {
		return nil
	}
	if provider == "" {
		provider = s.o.TTS.Name()
	}
	id := levelID{provider, language}
	if v, ok := s.levels[id]; ok {
		return v
	}
	name := s.voice
	if provider == embedded {
		name = ""
	}
	key := provider + "\x00" + language + "\x00" + name
	v := &voiceLevel{key: key, meter: s.o.Levels.Meter(key, s.o.Reply.Rate), leveller: audio.NewLeveller(s.o.Reply.Rate)}
	v.wanted.Store(math.Float64bits(v.meter.Gain()))
	s.levels[id] = v
	return v
}

// hear measures a frame that will be played.
func (v *voiceLevel) hear(pcm []int16) {
	v.meter.Add(pcm)
	v.wanted.Store(math.Float64bits(v.meter.Gain()))
}

// apply levels a frame; begins: it is the first of a segment.
func (v *voiceLevel) apply(pcm []int16, begins bool) {
	if begins {
		v.leveller.Begin()
	}
	v.leveller.Apply(pcm, v.gain())
}

// gain brings the voice to the loudness of all, in dB.
func (v *voiceLevel) gain() float64 { return math.Float64frombits(v.wanted.Load()) }
