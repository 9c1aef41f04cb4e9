package turn

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

// world is what a fuzzed conversation drives: it makes events that can happen, and
// holds the effects to the rules of the wire.
type world struct {
	t     *testing.T
	rules *Rules
	state State
	now   time.Time
	story []string

	running   uint64 // the turn whose goroutines run; 0: none
	cut       bool   // it was cut
	started   bool   // its tts start was sent
	open      bool   // it may act
	stage     Stage  // before the event
	told      map[string]int
	busy      bool
	quiet     time.Time
	last      uint64 // the utterance that was reported last
	over      map[uint64]bool
	hungUp    bool
	away      bool // it began with the farewell: nothing but that is said, and nobody listened to
	queue     int
	song      bool
	remembers int
}

func (w *world) errorf(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.story[max(0, len(w.story)-25):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// do feeds an event and checks what comes of it.
func (w *world) do(e Event) {
	w.t.Helper()
	before := fmt.Sprintf("%+v", w.state)
	from := w.state
	seen := Seen{
		Now: w.now, Song: w.song, Queue: Queue{Len: w.queue, Head: 1, Lang: "en"}, Playing: "once upon a time",
		Busy: w.busy, Quiet: w.quiet,
	}
	next, effects := w.rules.Next(from, seen, e)
	if after := fmt.Sprintf("%+v", from); after != before {
		w.errorf("%T changed its argument:\n%s\n%s", e, before, after)
	}
	w.state, w.stage = next, from.Reply.Stage
	w.story = append(w.story, fmt.Sprintf("%v %T%+v -> %s %T%+v", w.now.Format("04:05.000"), e, e, stageNames[next.Reply.Stage], effects, effects))
	if !next.Reply.runs() && next.Reply.Waits != (Waits{}) {
		w.errorf("a wait outlives its turn: %+v", next.Reply.Waits)
	}
	_, abort := e.(Abort)
	stops := 0
	for _, f := range effects {
		if w.hungUp {
			switch f.(type) {
			case Begin, Adopt, Commit, Hold, Start, AllowTool, Pause, Resume, Listen, HangUp:
				w.errorf("%T after the end", f)
			}
		}
		stops += w.effect(f)
	}
	if abort && from.Farewell.Step < Leaving && stops != 1 {
		w.errorf("an abort got %d stops", stops)
	}
	if len(next.Said) > 64 {
		w.errorf("%d utterances wait", len(next.Said))
	}
	if _, tick := e.(Tick); tick {
		if at := next.Deadline(); !at.IsZero() && !at.After(w.now) {
			again, _ := w.rules.Next(next, seen, Tick{})
			if at := again.Deadline(); !at.IsZero() && !at.After(w.now) {
				third, _ := w.rules.Next(again, seen, Tick{})
				if at := third.Deadline(); !at.IsZero() && !at.After(w.now) {
					w.errorf("the deadline does not move on after a tick: %v", third.Due)
				}
			}
		}
	}
}

// effect checks one effect, and gives how many tts stop it sends.
func (w *world) effect(f Effect) (stops int) {
	mine := func(turn uint64) {
		if turn != w.running {
			w.errorf("%T of turn %d while %d runs", f, turn, w.running)
		}
	}
	switch f := f.(type) {
	case Begin:
		if w.running != 0 {
			w.errorf("turn %d begins while %d runs", f.Turn, w.running)
		}
		if says := w.state.Farewell.Step == Saying; f.Request.Recorded != says || w.away && !says {
			w.errorf("turn %d begins: %+v", f.Turn, f.Request)
		}
		w.running, w.cut, w.started, w.open = f.Turn, false, false, !f.Request.Speculative
		w.told, w.quiet = map[string]int{}, time.Time{}
		if f.Request.Announcement == 1 {
			w.queue--
		}
	case Listen:
		if w.away {
			w.errorf("a device that is turned away is listened to")
		}
	case Adopt:
		mine(f.Turn)
	case Commit:
		mine(f.Turn)
		w.open = true
	case Hold:
		mine(f.Turn)
		if w.started {
			w.errorf("held after tts start")
		}
		w.open = false
	case Start:
		mine(f.Turn)
		if w.started || w.cut || !w.open {
			w.errorf("tts start: started %v, cut %v, open %v", w.started, w.cut, w.open)
		}
		w.started = true
	case AllowTool:
		mine(f.Turn)
		if w.cut || !w.open {
			w.errorf("a tool may run: cut %v, open %v", w.cut, w.open)
		}
	case Interpose:
		mine(f.Turn)
		if w.told[f.Phrase]++; w.cut || w.told[f.Phrase] > 1 || w.stage != Committed && w.stage != Speaking {
			w.errorf("%s is said %d times, cut %v, in %s", f.Phrase, w.told[f.Phrase], w.cut, stageNames[w.stage])
		}
	case Pause, Resume:
		if !w.started || w.cut {
			w.errorf("%T: started %v, cut %v", f, w.started, w.cut)
		}
	case Stop:
		mine(f.Turn)
		if w.cut {
			w.errorf("a stop after a cut")
		}
		w.cut = true
		stops = 1
	case Cut:
		mine(f.Turn)
		if w.cut {
			w.errorf("cut twice")
		}
		w.cut = true
		if w.started {
			stops = 1
		}
	case Remember, Discard:
		w.remembers++
	case EndMusic:
		w.song = false
	case Send:
		if f.Kind == wire.MessageTTSStop {
			stops = 1
		}
		if w.running != 0 && !w.open && f.Kind != wire.MessageTTSStop && f.Kind != wire.MessageKeepAlive {
			w.errorf("a message of a speculation")
		}
	case HangUp:
		if w.hungUp {
			w.errorf("hung up twice")
		}
		w.hungUp = true
	}
	return stops
}

// finish has the goroutines of the turn end.
func (w *world) finish(e Finished) {
	if w.running == 0 {
		return
	}
	e.Turn = w.running
	w.running = 0
	before := w.remembers
	// Stop belongs to the turn that ends: put it back while its effects are checked.
	w.running = e.Turn
	next, effects := w.rules.Next(w.state, Seen{Now: w.now, Song: w.song, Queue: Queue{Len: w.queue, Head: 1, Lang: "en"}}, e)
	w.story = append(w.story, fmt.Sprintf("%v %T%+v -> %s %T%+v", w.now.Format("04:05.000"), e, e, stageNames[next.Reply.Stage], effects, effects))
	w.state = next
	for _, f := range effects {
		w.effect(f)
		switch f.(type) {
		case Remember, Discard:
			w.running = 0
		}
	}
	if w.remembers != before+1 {
		w.errorf("a turn is let go of %d times", w.remembers-before)
	}
}

// pass lets time go by, with the ticks that are due.
func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for range 1000 {
		at := w.state.Deadline()
		if at.IsZero() || at.After(end) {
			w.now = end
			return
		}
		if at.After(w.now) {
			w.now = at
		}
		w.do(Tick{})
	}
	w.errorf("a thousand ticks in %v", d)
}

var (
	fuzzWords = []string{"", "hello there", "stop", "uh-huh", "tell me a joke", "once upon a time", "yes", "no"}
	fuzzModes = []wire.Mode{wire.Auto, wire.Realtime, wire.Manual}
)

// act does what two bytes say.
func (w *world) act(what, how byte) {
	words := fuzzWords[int(how)%len(fuzzWords)]
	said := Text{Status: Final, Words: words, Provider: "asr"}
	switch how % 11 {
	case 8:
		said = Text{Status: Unread}
	case 9:
		said.Status = Rejected
	case 10:
		said = Text{Status: Failed, Err: errors.New("no text")}
	}
	switch what % 24 {
	case 0:
		w.do(ListenStart{Mode: fuzzModes[int(how)%3]})
	case 1:
		w.do(ListenStop{})
	case 2:
		w.do(WakeWord{Word: "hi"})
	case 3:
		w.do(Typed{Words: fuzzWords[1+int(how)%7]})
	case 4:
		w.do(Abort{Wake: how%2 == 0})
	case 5, 6:
		if w.state.Mic.Mode != wire.Manual && !w.state.Mic.Deaf && len(w.state.Said) < 32 {
			w.last++
			w.do(SpeechStarted{ID: w.last, Epoch: w.state.Mic.Epoch})
		}
	case 7:
		w.do(SpeechLong{ID: w.last, Echo: how%5 == 0})
	case 8:
		w.do(Interim{ID: w.last, Words: words, Echo: how%7 == 0})
	case 9:
		w.do(SpeechPaused{ID: w.last})
		if how%3 == 0 {
			w.do(Draft{ID: w.last, Attempt: 1 + int(how)%2, Words: words})
		}
		if how%5 == 0 {
			w.do(Identified{ID: w.last - uint64(how%2), Speaker: Speaker{Voice: Recognition(how % 4), ID: words}})
		}
	case 10:
		w.do(SpeechResumed{ID: w.last, Attempt: 1 + int(how)%3, Gap: time.Duration(how) * 10 * time.Millisecond})
	case 11, 12:
		if !w.over[w.last] {
			w.over[w.last] = true
			w.do(SpeechEnded{ID: w.last, Epoch: w.state.Mic.Epoch, Attempt: 1, Spoken: w.now.Add(-w.rules.Commit), Ended: w.now, Echo: how%9 == 0})
		}
	case 13, 14:
		w.do(Transcript{ID: w.last - uint64(how%2), Attempt: 1 + int(how)%2, Text: said, Echo: how%9 == 0})
	case 15:
		w.do(Ready{Turn: w.running})
	case 16:
		if w.running != 0 && w.open && !w.cut {
			w.do(ToolWanted{Turn: w.running, Start: how%2 == 0})
		}
	case 17:
		w.finish(Finished{Played: time.Duration(how) * 50 * time.Millisecond, HangUp: how%40 == 0, Ask: uint64(how % 5)})
	case 18:
		w.queue, w.song = min(w.queue+1, 8), how%3 == 0
		w.do(Queued{})
	case 19:
		w.pass(time.Duration(how) * 40 * time.Millisecond)
	case 20:
		switch how % 5 {
		case 0:
			w.do(Interrupt{Announcement: 7, Lang: "en"})
		case 1:
			w.do(Invite{})
		case 2:
			w.do(StopReply{})
		case 3:
			w.do(StopMusic{Cause: ErrPaused})
		case 4:
			w.do(Withdraw{ID: w.state.Asked})
		}
	case 22:
		w.busy = how&16 != 0
		if w.started && how&32 != 0 {
			w.quiet = w.now.Add(time.Duration(how) * 10 * time.Millisecond)
		}
		w.do(Waiting{Turn: w.running, For: WaitFor(how % 3)})
		w.do(Advanced{Turn: w.running, Done: float64(how) / 200})
	case 23:
		w.do(Waited{Turn: w.running, For: WaitFor(how % 3)})
	case 21:
		if how == 255 {
			w.do(ListenFailed{Err: errors.New("deaf")})
		} else if how > 250 {
			w.do(Leave{Cause: ErrGoodbye})
		} else if how > 230 {
			w.do(Drain{Cause: errStops})
		}
	}
}

// FuzzNext holds random conversations to what no event may change: one turn at a
// time, nothing of it after its end, a pair of start and stop, exactly one stop
// for an abort, no tool of a turn that may be undone, and rest at last.
func FuzzNext(f *testing.F) {
	f.Add([]byte{0, 0, 5, 0, 7, 0, 9, 0, 13, 2, 11, 0, 15, 0, 16, 0, 17, 9})
	f.Add([]byte{0, 1, 3, 1, 15, 0, 5, 0, 7, 1, 8, 4, 17, 3, 11, 1, 13, 4, 15, 0, 4, 0, 17, 1})
	f.Add([]byte{0, 2, 1, 0, 11, 1, 13, 10, 15, 0, 17, 0, 19, 255, 18, 0, 19, 100, 15, 0, 20, 2, 17, 1})
	f.Add([]byte{2, 0, 0, 0, 15, 0, 17, 1, 18, 3, 19, 90, 15, 0, 4, 1, 17, 1, 20, 0, 15, 0, 20, 3, 17, 2})
	f.Add([]byte{3, 1, 22, 1, 15, 0, 22, 2, 19, 255, 23, 2, 19, 200, 22, 0, 19, 255, 4, 0, 17, 1})
	f.Add([]byte{0, 0, 3, 1, 15, 0, 21, 240, 4, 0, 17, 0, 15, 0, 17, 5})
	f.Add([]byte{0, 2, 21, 240, 1, 0, 11, 1, 13, 4, 15, 0, 17, 5})
	f.Add([]byte{4, 0, 0, 0, 15, 0, 17, 1, 0, 0, 0})
	f.Add([]byte{0, 1, 5, 0, 11, 1, 13, 8, 15, 0, 5, 0, 7, 1, 11, 1, 13, 30, 13, 4, 17, 1, 15, 0, 17, 2})
	f.Add([]byte{0, 0, 5, 0, 11, 1, 13, 8, 5, 0, 11, 1, 13, 4, 13, 10, 15, 0, 17, 1, 5, 0, 11, 1, 13, 8, 20, 4, 17, 1, 0, 0})
	f.Add([]byte("\x02\x00\x00\x00\x0e\xff\xfc\x01\x12\x03\x00\x0e\x8d\xfc\x01\x12\x03\x13\xb8\vu\xb8\v\x0e\n\xc2\x11\x01\x00\x149\xff\x03\x11"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 400 {
			return
		}
		w := &world{t: t, rules: rules(), now: epoch, over: map[uint64]bool{}}
		w.rules.Reads = len(script)%3 != 0
		w.state = State{Mic: Mic{Mode: wire.Auto, Deaf: true}, Active: epoch, Due: Due{Idle: epoch.Add(w.rules.IdleClose)}}
		if w.away = len(script)%4 == 3; w.away {
			w.state = TurnedAway(epoch, Farewell{Phrase: prompts.Overload, Cause: errBusy})
			w.state.Due.Idle = epoch.Add(w.rules.IdleClose)
		}
		for i := 0; i+1 < len(script); i += 2 {
			w.act(script[i], script[i+1])
			w.now = w.now.Add(20 * time.Millisecond)
		}
		// The device goes, whatever runs ends: all comes to rest.
		w.do(ListenStop{})
		for range 20 {
			w.finish(Finished{})
			w.pass(40 * time.Second)
		}
		if !w.hungUp || w.running != 0 {
			w.errorf("no rest: %s, turn %d runs, hung up %v", w.state.Phase(), w.running, w.hungUp)
		}
	})
}
