package servicetest

import "strings"

// Ear hears [Words] in 16 bit little-endian sound, as a fake recogniser does: the more
// sound there was, the more of them, and all of them in the end if any of it was loud.
// Its zero value hears nothing, for want of a rate.
type Ear struct {
	Rate int // Hz
	// Parts has the words come as two sentences: the first ends after half a second.
	Parts bool

	bytes int
	loud  bool
	told  int // bytes of Words that were given as finished sentences
}

// Hear takes sound and returns the sentence that is being spoken, so far, and whether it
// has ended now. It takes pieces of any length, also odd ones.
func (e *Ear) Hear(pcm []byte) (sentence string, ended bool) {
	e.bytes += len(pcm)
	e.loud = e.loud || Loud(pcm)
	if !e.loud {
		return "", false
	}
	heard := Heard(e.bytes/2, e.Rate)
	if first, _ := Halves(); e.Parts && e.told == 0 && len(heard) > len(first) {
		e.told = len(first)
		return first, true
	}
	if len(heard) <= e.told {
		return "", false
	}
	return strings.TrimSpace(heard[e.told:]), false
}

// Rest returns what was not given as a finished sentence when the sound is over, and
// makes the ear ready for the next utterance. Of silence it is "".
func (e *Ear) Rest() string {
	told, loud := e.told, e.loud && e.Rate > 0
	e.bytes, e.loud, e.told = 0, false, 0
	if !loud {
		return ""
	}
	return strings.TrimSpace(Words[told:])
}

// Heard reports whether any of the sound was loud.
func (e *Ear) Heard() bool { return e.loud }
