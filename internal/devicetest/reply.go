package devicetest

import (
	"slices"
	"strings"
	"time"
)

// Sentence is one subtitle of a reply.
type Sentence struct {
	Text string
	At   time.Time // when it arrived
}

// Reply holds all of one answer, from tts start to tts stop: words, times and sound.
type Reply struct {
	Heard     string // the last stt text before it; empty for a server turn
	Sentences []Sentence
	Emotion   string // of its llm message; empty if there was none

	Started    time.Time // tts start
	FirstFrame time.Time // arrival; zero when no sound came
	LastFrame  time.Time
	PlayedOut  time.Time // when the last accepted packet had been played, on the model clock
	Stopped    time.Time // tts stop; zero when the connection ended first
	Cut        bool      // the device asked for its end, or realtime mode cut it before play-out

	Frames    int           // packets that arrived
	Dropped   int           // packets of them that were not played
	LeadMin   time.Duration // least sound ahead at an arrival, after the first 300 ms of a burst; 0: never measured
	LeadMax   time.Duration // most sound ahead at an arrival
	Underruns int           // times the speaker fell silent before more sound came

	Rate int     // Hz of PCM
	PCM  []int16 // what was played

	counted int // underruns that Stats has
}

// Text returns all sentences, one after the other, with a space between two that need one.
func (r *Reply) Text() string {
	parts := make([]string, 0, len(r.Sentences))
	for _, s := range r.Sentences {
		parts = append(parts, s.Text)
	}
	return strings.Join(parts, " ")
}

// Duration returns the length of the played sound.
func (r *Reply) Duration() time.Duration {
	if r.Rate == 0 {
		return 0
	}
	return time.Duration(len(r.PCM)) * time.Second / time.Duration(r.Rate)
}

func (r *Reply) clone() *Reply {
	c := *r
	c.Sentences = slices.Clone(r.Sentences)
	return &c
}
