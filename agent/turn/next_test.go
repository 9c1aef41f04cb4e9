package turn

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

var update = flag.Bool("update", false, "write docs/turn.md")

// rules are the settings of the tests.
func rules() *Rules {
	return &Rules{
		Commit: 700 * time.Millisecond, Trigger: 200 * time.Millisecond, MinSpeech: 150 * time.Millisecond, Speculations: 3,
		IdleClose: 100 * time.Second, SlowAfter: 2500 * time.Millisecond, RecognizeTimeout: 30 * time.Second,
		StopWords: []string{"stop"}, DeviceLang: "en",
	}
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// in is a conversation with its microphone open, and a reply of a stage in which
// the user is speaking.
func in(mode wire.Mode, stage Stage) State {
	s := State{
		Mic: Mic{Mode: mode, Open: true, Epoch: 1}, Ear: Hearing, Turns: 1, Active: epoch,
		Said:  []Utterance{{ID: 1, Epoch: 1, Attempt: 1}},
		Reply: Reply{Turn: 1, Stage: stage, Request: Request{Words: "hello there", Shown: "hello there", Lang: "en"}},
		Due:   Due{Idle: epoch.Add(100 * time.Second)},
	}
	switch stage {
	case None:
		s.Reply, s.Turns = Reply{}, 0
	case Speculative:
		s.Reply.Request.Speculative = true
		s.Speculate.Tries = 1
		s.Said[0].Text = Text{Status: Final, Words: "hello there", At: epoch}
	case Held:
		s.Reply.Acted, s.Reply.Over, s.Reply.Until = true, 1, epoch.Add(maxPause)
		s.Said[0].Over = OverReply
	case Speaking, Paused:
		s.Reply.Ready, s.Reply.Over = true, 1
		s.Said[0].Over = OverReply
		if stage == Paused {
			s.Reply.Until = epoch.Add(maxPause)
		}
	case Committed, Ending, Discarded:
	}
	return s
}

// spoken is in for an event that begins or follows an utterance.
func spoken(s State, e Event) State {
	switch e.(type) {
	case SpeechStarted:
		s.Said = nil
		if s.Reply.Stage == Committed || s.Reply.Stage == Held {
			s.Said = []Utterance{{ID: 9, Epoch: 1, Attempt: 1, Role: Awaited, Text: Text{Status: Final, Words: "hello there"}}}
		}
	case Interim, Transcript:
		if s.Reply.Stage == Committed && s.Reply.Acted {
			s.Said[0].Over, s.Reply.Over = OverReply, 1
		}
	}
	return s
}

// columns and rows are those of the tables in docs/turn.md: a stage of the reply,
// and an event.
var (
	columns = []struct {
		name  string
		stage Stage
		acted bool
	}{
		{name: "None", stage: None}, {name: "Speculative", stage: Speculative}, {name: "Committed", stage: Committed},
		{name: "Committed, a tool has run", stage: Committed, acted: true}, {name: "Held", stage: Held},
		{name: "Speaking", stage: Speaking}, {name: "Paused", stage: Paused}, {name: "Ending", stage: Ending},
	}
	rows = []struct {
		name string
		e    Event
	}{
		{"listen start", ListenStart{Mode: ""}},
		{"listen stop", ListenStop{}},
		{"wake word", WakeWord{Word: "hi"}},
		{"typed text", Typed{Words: "what time is it"}},
		{"abort", Abort{}},
		{"speech started", SpeechStarted{ID: 2, Epoch: 1}},
		{"speech long", SpeechLong{ID: 1}},
		{"interim: a request", Interim{ID: 1, Words: "tell me a joke"}},
		{"interim: a stop-word", Interim{ID: 1, Words: "stop"}},
		{"interim: a backchannel", Interim{ID: 1, Words: "uh-huh"}},
		{"speech paused", SpeechPaused{ID: 1}},
		{"speech resumed", SpeechResumed{ID: 1, Attempt: 2, Gap: 300 * time.Millisecond}},
		{"speech ended", SpeechEnded{ID: 1, Epoch: 1, Attempt: 1, Spoken: epoch, Ended: epoch}},
		{"transcript: a request", Transcript{ID: 1, Attempt: 1, Text: Text{Status: Final, Words: "tell me a joke"}}},
		{"transcript: a backchannel", Transcript{ID: 1, Attempt: 1, Text: Text{Status: Final, Words: "uh-huh"}}},
		{"sound without words", Transcript{ID: 1, Attempt: 1, Text: Text{Status: Unread}}},
		{"speaker known", Identified{ID: 1, Speaker: Speaker{Voice: Familiar, ID: "a", Name: "Anna", Sure: 80}}},
		{"ready", Ready{Turn: 1}},
		{"tool wanted", ToolWanted{Turn: 1}},
		{"finished", Finished{Turn: 1}},
		{"tick at the limit of a pause", Tick{}},
		{"tick when the model takes long", slow{}},
		{"say at once, from outside", Interrupt{Announcement: 7, Lang: "en"}},
		{"stop, from outside", StopReply{}},
		{"drain", Drain{Cause: errStops}},
		{"leave", Leave{Cause: ErrGoodbye}},
		{"close", Close{}},
	}
)

// slow is a tick at which the model has taken too long.
type slow struct{ Tick }

// stageNames are the stages as docs/turn.md names them.
var stageNames = []string{"None", "Speculative", "Committed", "Held", "Speaking", "Paused", "Ending", "Discarded"}

// step is what an event leads to: the next stage, and the effects by name.
func outcome(mode wire.Mode, stage Stage, acted bool, e Event) string {
	if l, ok := e.(ListenStart); ok {
		l.Mode = mode
		e = l
	}
	seen := Seen{Now: epoch.Add(50 * time.Millisecond)}
	if _, ok := e.(Tick); ok {
		seen.Now = epoch.Add(maxPause)
	}
	from := in(mode, stage)
	from.Reply.Acted = from.Reply.Acted || acted
	from = spoken(from, e)
	if _, ok := e.(slow); ok {
		seen.Now, e = epoch.Add(2600*time.Millisecond), Tick{}
		if from.Reply.runs() {
			from.Reply.Waits[Model] = Wait{Since: epoch, Due: epoch.Add(2500 * time.Millisecond)}
		}
	}
	return led(from, seen, e)
}

// led is what an event leads to from a state.
func led(from State, seen Seen, e Event) string {
	stage := from.Reply.Stage
	next, effects := rules().Next(from, seen, e)
	var names []string
	for _, f := range effects {
		name := strings.TrimPrefix(fmt.Sprintf("%T", f), "turn.")
		switch f := f.(type) {
		case Release, Microphone, CloseListener:
			continue
		case Cut:
			name += " (" + f.Cause.Error() + ")"
		case Watch:
			if !f.On {
				name = "Watch off"
			}
		case Send:
			name = "tts stop"
		}
		names = append(names, name)
	}
	if next.Farewell.Step == Saying && from.Farewell.Step != Saying {
		names = append(names, "farewell")
	}
	to := stageNames[next.Reply.Stage]
	if next.Reply.Stage == stage {
		to = ""
	}
	if next.Pending != nil {
		to = strings.TrimSpace(to + " then the next")
	}
	if next.Farewell.Step == Gone {
		to = "closed"
	}
	return strings.Trim(to+": "+strings.Join(names, ", "), ": ")
}

// document is docs/turn.md as the function makes it.
func document(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(preface)
	for _, mode := range []wire.Mode{wire.Auto, wire.Realtime} {
		fmt.Fprintf(&b, "\n## Listen mode %s\n\n| event |", mode)
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", c.name)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s |", r.name)
			for _, c := range columns {
				got := outcome(mode, c.stage, c.acted, r.e)
				if got == "" {
					got = "–"
				}
				fmt.Fprintf(&b, " %s |", got)
			}
			b.WriteString("\n")
		}
	}
	return b.String() + farewellDocument()
}

const preface = `# Who may speak: the transition table

One pure function decides who may speak: ` + "`Rules.Next`" + ` in ` + "`agent/turn`" + ` takes the state of a conversation and an event and gives the
next state and the effects, which the conversation carries out in their order. It has no clock, no lock and no
goroutine. The tables below are written by its test (` + "`go test ./agent/turn -run TestTurnDocument -update`" + `), which fails when they differ
from what the function does.

A **turn** is one utterance and its answer, or something that the server says by itself: a greeting, an announcement, the
farewell. The stage says how far its reply is:

` + "```" + `
       ┌─────────────▶ Committed ⇄ Held
       │                │    │      │
None ─▶ Speculative ─▶──┘    ▼      │
  ▲          │            Speaking ⇄ Paused
  │          ▼               │      │
  └────── Ending ◀───────────┴──────┘      and None from each of them when the reply is finished
` + "```" + `

| stage | meaning | what the device knows of it |
|---|---|---|
| None | no turn runs | nothing |
| Speculative | begun at a pause that may be the end of what the user says; nothing of it may be seen, heard or done | nothing |
| Committed | the answer; it can be undone while the user goes on, until a tool has run | ` + "`stt`" + ` |
| Held | committed, and a tool has run: kept back while the user goes on | ` + "`stt`" + ` |
| Speaking | ` + "`tts start`" + ` was sent | it plays |
| Paused | voice over it; the words decide | it is silent |
| Ending | cut or undone; its goroutines are being joined (a speculation: Discarded) | ` + "`tts stop`" + `, if it had started |

A cell holds the next stage where it changes, and the effects (` + "`agent/turn/effect.go`" + ` says what each is; what only
keeps the books is left out). "tts stop" is that message without a reply, "then the next" that a request waits for the
stage None, "closed" that nothing follows any more; "–" means that nothing is done. In each cell the microphone is open
and the user is speaking: over the reply where it is heard or a tool has run, else what will be answered. "Speech
started" is new speech after the words that are being answered. "Resumed" is the user, who goes on; Resume is the
reply. Held is for auto mode, Paused for realtime mode. Manual mode (push to talk) is as auto mode, but that the server
never opens the microphone by itself (no Listen after abort, finished and stop) and holds no reply back. "Sound
without words" is an utterance that a realtime service answers: at its end it is answered as it is, and its words are
read first where they decide (over a reply, after a question, while there is music); the tables show it where there is
no recogniser that could. Limits that do
not show here (idle, late texts, announcements) are in the function's own tests and in the scenes of
` + "`agent/testdata/talk`" + `.
`

// TestTurnDocument holds docs/turn.md to what the function does.
func TestTurnDocument(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "turn.md")
	want := document(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/turn.md is not what the function does: go test ./agent/turn -run TestTurnDocument -update")
	}
}

// TestManualIsAuto holds what docs/turn.md says of the mode that has no table.
func TestManualIsAuto(t *testing.T) {
	opened := strings.NewReplacer("Listen, ", "", ", Listen", "", ": Listen", "", "Listen", "")
	for _, r := range rows {
		for _, c := range columns {
			if r.name == "speech started" && (c.acted || c.stage == Held) {
				continue // held in auto mode only
			}
			manual, auto := outcome(wire.Manual, c.stage, c.acted, r.e), outcome(wire.Auto, c.stage, c.acted, r.e)
			if r.name == "speech ended" && c.stage == Speculative {
				manual = strings.TrimSuffix(strings.Replace(manual, "Speaking", "Committed", 1), ", Start, Mute") // nothing can undo it any more
			}
			if opened.Replace(manual) != opened.Replace(auto) {
				t.Errorf("%s, %s: manual %q, auto %q", r.name, c.name, manual, auto)
			}
		}
	}
}

// drafted is a speculation on what a recogniser has understood without being asked.
func drafted() State {
	s := in(wire.Auto, Speculative)
	s.Said[0].Text.Status = Pending
	return s
}

// TestPointsInNumbersAreWords: a speculation is not kept for words that differ by one.
func TestPointsInNumbersAreWords(t *testing.T) {
	for words, same := range map[string]bool{"set it to 25": true, "Set it to 25.": true, "set it to 2.5": false, "set it to 2:5": false} {
		s := drafted()
		s.Reply.Request.Words = "set it to 25"
		next, _ := rules().Next(s, Seen{Now: epoch}, Transcript{ID: 1, Attempt: 1, Text: Text{Status: Final, Words: words}})
		if got := next.Reply.Stage == Speculative; got != same {
			t.Errorf("%q: kept: %v", words, got)
		}
	}
}

// TestNext walks the rules that a reader would look for first.
func TestNext(t *testing.T) {
	words := func(w string) Text { return Text{Status: Final, Words: w, Provider: "asr"} }
	for _, c := range []struct {
		name string
		from State
		e    Event
		to   Stage
		want []string // effects, by name
	}{
		{"a pause begins a speculation", in(wire.Auto, None), Transcript{ID: 1, Attempt: 1, Text: words("hello there")}, Speculative, []string{"AwaitSilence", "Begin"}},
		{"so does what a recogniser that streams has understood", in(wire.Auto, None), Draft{ID: 1, Attempt: 1, Words: "hello there"}, Speculative, []string{"AwaitSilence", "Begin"}},
		{"but not without words", in(wire.Auto, None), Draft{ID: 1, Attempt: 1, Words: "…"}, None, nil},
		{"nor one of before the user went on", in(wire.Auto, None), Draft{ID: 1, Words: "hello there"}, None, nil},
		{"more of it begins anew", drafted(), Draft{ID: 1, Attempt: 1, Words: "hello there you"}, Discarded, []string{"AwaitSilence", "Cut"}},
		{"the same does not", drafted(), Draft{ID: 1, Attempt: 1, Words: "hello, there"}, Speculative, []string{"AwaitSilence"}},
		{"the same in another language does", drafted(), Transcript{ID: 1, Attempt: 1, Text: Text{Status: Final, Words: "hello there", Lang: "de"}}, Discarded, []string{"AwaitSilence", "Cut"}},
		{"the final text with the same words keeps it", drafted(), Transcript{ID: 1, Attempt: 1, Text: words("Hello there.")}, Speculative, []string{"AwaitSilence"}},
		{"one with others begins anew", drafted(), Transcript{ID: 1, Attempt: 1, Text: words("hello where")}, Discarded, []string{"AwaitSilence", "Cut"}},
		{"the end of speech commits it", in(wire.Auto, Speculative), SpeechEnded{ID: 1, Epoch: 1, Attempt: 1}, Committed, []string{"Adopt", "Commit"}},
		{"a speculation asks in vain for its start", in(wire.Auto, Speculative), Ready{Turn: 1}, Speculative, nil},
		{"and for a tool", in(wire.Auto, Speculative), ToolWanted{Turn: 1}, Speculative, nil},
		{"going on discards it", in(wire.Auto, Speculative), SpeechResumed{ID: 1, Attempt: 2}, Discarded, []string{"Cut"}},
		{"speaking on undoes a committed turn", in(wire.Auto, Committed), SpeechStarted{ID: 2, Epoch: 1}, Committed, nil},
		{"a tool may run once it is committed", in(wire.Auto, Committed), ToolWanted{Turn: 1}, Committed, []string{"AllowTool"}},
		{"with tts start before it", in(wire.Auto, Committed), ToolWanted{Turn: 1, Start: true}, Speaking, []string{"Start", "Mute", "AllowTool"}},
		{"voice pauses a reply", in(wire.Realtime, Speaking), SpeechLong{ID: 1}, Paused, []string{"Pause"}},
		{"but not its own echo", in(wire.Realtime, Speaking), SpeechLong{ID: 1, Echo: true}, Speaking, []string{"Ignored"}},
		{"a request cuts it", in(wire.Realtime, Paused), Interim{ID: 1, Words: "tell me a joke"}, Ending, []string{"Watch", "Cut"}},
		{"a cough does not", in(wire.Realtime, Paused), Transcript{ID: 1, Attempt: 1, Text: words("")}, Speaking, []string{"Resume"}},
		{"nobody decides: it goes on", in(wire.Realtime, Paused), Tick{}, Speaking, []string{"Resume"}},
		{"the button ends it", in(wire.Auto, Speaking), Abort{}, Ending, []string{"Cut", "Listen"}},
		{"with nothing to end there is one stop", in(wire.Auto, None), Abort{}, None, []string{"Send", "Listen"}},
		{"a reply that was played out", in(wire.Auto, Speaking), Finished{Turn: 1}, None, []string{"Stop", "Remember", "Listen"}},
		{"one that was cut", in(wire.Auto, Ending), Finished{Turn: 1}, None, []string{"Remember"}},
		{"a speculation that was undone", in(wire.Auto, Discarded), Finished{Turn: 1}, None, []string{"Discard"}},
		{"a server that stops lets a reply be heard", in(wire.Auto, Speaking), Drain{errStops}, Speaking, nil},
		{"and tells a listener", in(wire.Auto, None), Drain{errStops}, Committed, []string{"CloseListener", "Begin"}},
		{"without capacity a listener is told", TurnedAway(epoch, Farewell{Phrase: prompts.Overload, Cause: errBusy}), ListenStart{wire.Auto}, Committed, []string{"CloseListener", "Begin"}},
		{"and an abort answered", TurnedAway(epoch, Farewell{Phrase: prompts.Overload, Cause: errBusy}), Abort{}, None, []string{"Send"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := Seen{Now: epoch}
			if _, ok := c.e.(Tick); ok {
				seen.Now = epoch.Add(maxPause)
			}
			before := fmt.Sprintf("%+v", c.from)
			next, effects := rules().Next(c.from, seen, c.e)
			if next.Reply.Stage != c.to {
				t.Errorf("the stage is %s, want %s", stageNames[next.Reply.Stage], stageNames[c.to])
			}
			var names []string
			for _, f := range effects {
				switch f.(type) {
				case Release, Microphone:
				default:
					names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", f), "turn."))
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("effects %v, want %v", names, c.want)
			}
			if after := fmt.Sprintf("%+v", c.from); after != before {
				t.Error("the argument was changed")
			}
			again, same := rules().Next(c.from, seen, c.e)
			if !reflect.DeepEqual(again, next) || !reflect.DeepEqual(same, effects) {
				t.Error("the same arguments give another result")
			}
		})
	}
}

// Words of the user to a question of what may be allowed, by whether somebody speaks
// with the device and what was told since.
func TestConsented(t *testing.T) {
	for _, c := range []struct {
		name   string
		words  string
		typed  bool
		spoke  bool
		asked  Consent
		allow  bool
		answer string // the phrase that is said
		open   bool   // the question stays open
	}{
		{"yes", "yes", false, true, Consent{}, true, "", false},
		{"typed yes", "yes", true, false, Consent{}, true, "", false},
		{"typed yes where somebody speaks", "yes", true, true, Consent{}, false, "consent_ask", false},
		{"again", "yes", true, true, Consent{Again: true}, false, "consent_no", false},
		{"typed no where somebody speaks", "no", true, true, Consent{}, false, "consent_no", false},
		{"overtaken", "yes", false, true, Consent{Overtaken: true}, false, "consent_ask", false},
		{"overtaken again", "yes", false, true, Consent{Again: true, Overtaken: true}, false, "consent_no", false},
		{"no", "no", false, true, Consent{}, false, "consent_no", false},
		{"please do not", "please do not", false, true, Consent{Action: "do the not disturb"}, false, "consent_no", false},
		{"not clear", "maybe", false, true, Consent{}, false, "consent_ask", false},
		{"not clear twice", "maybe", false, true, Consent{Again: true}, false, "consent_no", false},
		{"a request", "what time is it in Rome", false, true, Consent{}, false, "", false},
		{"begun", "um", false, true, Consent{}, false, "", true},
		{"too late", "yes", false, true, Consent{Until: epoch.Add(-time.Second)}, false, "", false},
	} {
		s := State{Learned: Learned{Spoke: c.spoke}, Consent: c.asked}
		s.Consent.ID = 7
		if s.Consent.Until.IsZero() {
			s.Consent.Until = epoch.Add(time.Minute)
		}
		x := &step{State: s, Rules: rules(), seen: Seen{Now: epoch}}
		r := consented(x, Request{Words: c.words, Typed: c.typed, Lang: "en"})
		if r.Allow != c.allow || r.Answer != c.answer || (x.Consent.ID != 0) != c.open || c.open && !x.Consent.Overtaken {
			t.Errorf("%s: allow %v, answer %q, open %+v", c.name, r.Allow, r.Answer, x.Consent)
		}
	}
}
