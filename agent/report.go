package agent

import (
	"errors"
	"unicode/utf8"

	"xiaozhi/agent/turn"
	"xiaozhi/internal/timeline"
)

// Stage tells utterances that are being heard from answers that are over.
type Stage int

// The stages.
const (
	StageVoice Stage = iota // somebody speaks
	StageWords              // it is known what was said, or why not
	StageEnd                // the turn is over
)

// Report says what has come of hearing and answering. It holds no words.
type Report struct {
	Stage Stage

	// Of StageWords.
	Kind       TurnKind
	Chars      int    // signs of the words; 0: there are none
	Recognizer string // that has recognised them
	Aloud      bool   // the sound is answered, and not written down
	Rejected   bool   // the words are of a language that no recogniser knows

	// Of StageEnd.
	Turn    uint64
	Heard   int   // signs of the answer that were heard
	Cut     bool  // not all of the answer was heard
	Cause   error // how it ended
	Figures timeline.Figures

	Err error // what failed; of StageWords, too; nil: nothing
}

// tell tells whoever watches.
func (o *Options) tell(r Report) {
	if o.Report != nil {
		o.Report(r)
	}
}

// tellRequest tells of the words that a turn answers; nothing was said where the server speaks by itself.
func (m *microphone) tellRequest(o *order) {
	kind, rejected := kindOf(o), m.rejected
	m.rejected = false
	if kind == TurnServer && o.Err == nil && !errors.Is(o.Cause, turn.ErrNoSpeech) {
		return
	}
	m.c.o.tell(Report{
		Stage: StageWords, Kind: kind, Chars: utf8.RuneCountInString(o.Words), Recognizer: o.Times.ASR, Aloud: o.Sound, Err: o.Err,
		Rejected: rejected && o.Words == "",
	})
}

// endOf is the report of the end of a turn.
func endOf(r *reply, f timeline.Figures) Report {
	return Report{Stage: StageEnd, Kind: kindOf(&r.order), Turn: r.id, Heard: r.out.heard, Cut: r.out.cut, Cause: r.out.cause, Err: r.out.err, Figures: f}
}
