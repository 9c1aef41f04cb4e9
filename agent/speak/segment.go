package speak

import (
	"iter"
	"sync/atomic"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/sentence"
	"xiaozhi/providers"
)

// Segment is one piece of a reply on its way to the ear.
type Segment struct {
	sentence.Segment
	Keep     bool                              // it belongs to the answer; phrases of ours may not
	Fallback string                            // the phrase whose embedded sound is played if it cannot be synthesised; "": none
	Recorded bool                              // Fallback's sound is played: nothing is synthesised
	Step     int                               // of the turn in which it was said
	Sound    iter.Seq2[providers.Sound, error] // its sound; nil: it is synthesised

	spoken   *Spoken // its sound with its words; nil: it has one text
	aloud    bool    // it is part of that
	progress *progress
}

// NewSegment prepares words of the answer in a turn of that language.
func NewSegment(words string, lang text.Lang, step int) Segment {
	return Segment{Segment: sentence.New(words, lang), Keep: true, Step: step}
}

// NewPhrase prepares a phrase, which is no part of the answer.
func NewPhrase(id, words string, lang text.Lang) Segment {
	s := Segment{Segment: sentence.New(words, lang), Fallback: id}
	s.Face()
	return s
}

// NewRecorded prepares a phrase that is played from its embedded sound.
func NewRecorded(id, words string, lang text.Lang) Segment {
	return Segment{Segment: sentence.Segment{Display: words, Speech: words, Language: lang}, Fallback: id, Recorded: true}
}

// progress counts how much sound of a segment there is so far. The synthesiser writes
// it, the player reads it.
type progress struct {
	nanos atomic.Int64
	whole atomic.Bool // nothing will be added
}

// add notes that there is more sound.
func (p *progress) add(d time.Duration) { p.nanos.Add(int64(d)) }
