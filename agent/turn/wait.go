package turn

import (
	"slices"
	"time"

	"xiaozhi/prompts"
)

// When a turn that waits says so (docs/behaviours.md 36 and 40): after so much
// silence, twice for tools, once for the model, once for the voice.
const (
	fillerAfter = 1200 * time.Millisecond
	fillerAgain = 6 * time.Second
	// slowGrace is how long an engine may take in any case before it is said to be
	// slow, however long the user has waited for the others.
	slowGrace = 400 * time.Millisecond
)

// WaitFor is something that a turn may wait for.
type WaitFor int

// The things that a turn waits for, each at most once at a time.
const (
	Model WaitFor = iota // the next words of the language model
	Tool                 // the outcome of a tool
	Voice                // the first sound of a segment
)

// Waits are the waits of a turn, by what they are for.
type Waits [3]Wait

// Wait describes how long a turn has waited for one thing.
type Wait struct {
	Since time.Time // zero: it does not
	Due   time.Time // when the user is told; zero: never
	Told  int       // how often the user was told in this turn
	Part  Part      // of a tool's work that is done, as it says; those that were told count
	Said  Part      // that was told of it
}

// Part is a part of a tool's work, as coarse as people want to hear it.
type Part int

// The parts. The zero value is less than a quarter.
const (
	Quarter Part = iota + 1
	Half
	Most // nine tenths
)

// PartOf returns the part that a share of the whole is.
func PartOf(done float64) (p Part) {
	for i, least := range []float64{0.25, 0.5, 0.9} {
		if done >= least {
			p = Part(i + 1)
		}
	}
	return p
}

// advanced notes how far a tool is. It never goes back.
func advanced(x *step, e Advanced) {
	w := &x.Reply.Waits[Tool]
	if e.Turn != x.Reply.Turn || w.Since.IsZero() || PartOf(e.Done) <= w.Part {
		return
	}
	w.Part = PartOf(e.Done)
	w.Due = x.tellAt(Tool)
}

// waiting handles a turn that begins to wait for something.
func waiting(x *step, e Waiting) {
	if e.Turn == x.Reply.Turn && x.Reply.runs() {
		x.awaits(e.For)
	}
}

// awaits counts a wait from now on.
func (x *step) awaits(what WaitFor) {
	w := &x.Reply.Waits[what]
	w.Since, w.Part, w.Said = x.seen.Now, 0, 0
	w.Due = x.tellAt(what)
}

// waited handles the end of a wait.
func waited(x *step, e Waited) {
	if e.Turn == x.Reply.Turn {
		w := &x.Reply.Waits[e.For]
		w.Since, w.Due = time.Time{}, time.Time{}
	}
}

// tellAt returns when the user is told that something takes a while, as far as
// that is known; zero: never. What is being said or made at the moment puts it
// off, but not for the voice, which is what makes it.
func (x *step) tellAt(what WaitFor) time.Time {
	w, after := x.Reply.Waits[what], x.SlowAfter
	switch {
	case what == Tool && w.Told == 0:
		after = fillerAfter
	case what == Tool && (w.Told == 1 || w.Part > w.Said):
		after = fillerAgain
	case w.Told > 0 || x.SlowAfter <= 0 || what == Model && x.Reply.Request.Words == "" && !x.Reply.Request.Sound: // nobody waits for what the server says by itself
		return time.Time{}
	}
	busy := x.seen.Busy && what != Voice
	quiet := w.Since
	if what != Voice {
		quiet = later(quiet, x.seen.Quiet)
	}
	if busy {
		quiet = later(quiet, x.seen.Now)
	}
	at := quiet.Add(after)
	if w.Told == 0 && !busy && x.seen.Quiet.IsZero() && x.SlowAfter > 0 { // nothing was heard yet
		times := x.Reply.Request.Times
		if times.Silent.IsZero() {
			times.Silent = times.EndOfSpeech
		}
		at = earlier(at, x.slowAt(times.Silent, w.Since))
	}
	return at
}

// slowAt returns when an engine that has worked since then is said to be slow to
// a user who has heard nothing from silent on; zero: that is not known.
func (x *step) slowAt(silent, since time.Time) time.Time {
	if silent.IsZero() {
		return since.Add(x.SlowAfter)
	}
	return later(silent.Add(x.SlowAfter), since.Add(min(slowGrace, x.SlowAfter)))
}

// noticeDue returns when the user is told that something takes a while; zero: not
// in this state. Where the reply cannot be heard that has to wait, and the words
// about a tool wait for a user who speaks.
func (s *State) noticeDue(what WaitFor) time.Time {
	if !s.Reply.audible() || what == Tool && s.Voiced() {
		return time.Time{}
	}
	return s.Reply.Waits[what].Due
}

// tooLong says that something takes a while, if there has been silence for long
// enough.
func tooLong(x *step, what WaitFor) {
	w := &x.Reply.Waits[what]
	if w.Since.IsZero() || !x.Reply.audible() || x.Farewell.Step > Parting {
		return
	}
	switch at := x.tellAt(what); {
	case at.After(x.seen.Now), at.IsZero():
		w.Due = at
	default:
		ready(x, x.Reply.Turn)
		x.do(Interpose{x.Reply.Turn, x.Reply.Request.Lang, phrase(what, *w)})
		if w.Told++; w.Told > 1 {
			w.Said = w.Part
		}
		w.Due = x.tellAt(what)
	}
}

// phrase says that something takes a while, as is fit after what was said before.
func phrase(what WaitFor, w Wait) string {
	switch {
	case what == Model:
		return prompts.SlowLLM
	case what == Voice:
		return prompts.SlowTTS
	case w.Told == 0:
		return prompts.Filler
	case w.Part == w.Said:
		return prompts.FillerLong
	}
	return map[Part]string{Quarter: prompts.FillerQuarter, Half: prompts.FillerHalf, Most: prompts.FillerMost}[w.Part]
}

func later(times ...time.Time) time.Time   { return slices.MaxFunc(times, time.Time.Compare) }
func earlier(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }
