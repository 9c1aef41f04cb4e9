package turn

import (
	"slices"
	"strings"
	"time"
)

// Speaker says who is taken to be speaking, by the voice. Its zero value: it is not known, or not looked for.
type Speaker struct {
	Voice   Recognition
	ID      string // of the person; "": a stranger
	Name    string
	Sure    int  // how much the voices are alike, in per cent
	Certain bool // that is well above what is needed
	Before  bool // it is known of what was said before, and only taken to hold now
}

// Recognition says what is known of a voice.
type Recognition int

// The kinds of recognition.
const (
	Unheard  Recognition = iota // it is not known yet, or not looked for
	Unclear                     // too little was said, or too quietly: it says nothing of who it was
	Stranger                    // it is of nobody who is known, or of several people
	Familiar                    // it is of a person who is known
)

// Identified says who is taken to have spoken an utterance. It may come several times, the last one counts, and after all else of
// the utterance.
type Identified struct {
	ID      uint64
	Speaker Speaker
}

// speakerFor is how long who has spoken last is taken to speak on, where the voice is not known in time.
const speakerFor = time.Minute

// lastSpeaker tells who has spoken last, as far as it is known.
type lastSpeaker struct {
	Speaker

	utterance uint64
	at        time.Time
}

// identified takes in who speaks. What the answer was begun for does not change once it is committed: then it counts from the next
// turn on.
func identified(x *step, e Identified) {
	if e.ID >= x.LastSpeaker.utterance && e.Speaker.Voice > Unclear {
		x.LastSpeaker = lastSpeaker{e.Speaker, e.ID, x.seen.Now}
	}
	u := x.find(e.ID)
	if u == nil {
		return
	}
	u.Speaker = e.Speaker
	if u.Role == Live && u.Over == OverNothing && u.Text.Words != "" && x.Speculates() && guess(x).Speaker.ID != speaker(x, append(x.all(Awaited), u)).ID {
		speculate(x, u) // the answer that was begun is for somebody else
	}
}

// speaker returns who speaks, of utterances that are answered together: nobody if they are not all of one person. Of utterances of
// which it is not known yet it is who has spoken a moment ago.
func speaker(x *step, said []*Utterance) (s Speaker) {
	if len(said) == 0 {
		return Speaker{}
	}
	pending, unclear := false, false
	for _, u := range said {
		switch u.Speaker.Voice {
		case Stranger:
			return Speaker{Voice: Stranger}
		case Familiar:
			if s.ID != "" && s.ID != u.Speaker.ID {
				return Speaker{Voice: Stranger}
			}
			if s.ID == "" || u.Speaker.Sure < s.Sure {
				s = u.Speaker
			}
		case Unheard:
			pending = true
		case Unclear:
			unclear = true
		}
	}
	before := x.LastSpeaker
	switch {
	case s.ID != "":
		return s
	case !pending && unclear:
		return Speaker{Voice: Unclear}
	case before.Voice == Familiar && x.seen.Now.Sub(before.at) <= speakerFor:
		before.Before = true
		return before.Speaker
	}
	return Speaker{}
}

// mayAllow reports whether a speaker may say yes to the question: if only certain people may, theirs was the voice that said it.
func (c *Consent) mayAllow(s Speaker) bool {
	return len(c.By) == 0 || s.told() && slices.ContainsFunc(c.By, func(name string) bool { return strings.EqualFold(name, s.Name) })
}

// told reports whether the voice itself has told who it is, or that it is a stranger's.
func (s Speaker) told() bool { return s.Voice == Stranger || s.Voice == Familiar && !s.Before }
