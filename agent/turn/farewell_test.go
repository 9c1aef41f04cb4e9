package turn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

var (
	errStops = errors.New("server is stopping")
	errBusy  = errors.New("server is too busy")
)

// farewellColumns are the states of a farewell.
func farewellColumns() (names []string, from []State) {
	led := func(s State, events ...Event) State {
		for _, e := range events {
			s, _ = rules().Next(s, Seen{Now: epoch}, e)
		}
		return s
	}
	away := TurnedAway(epoch, Farewell{Phrase: prompts.Overload, Cause: errBusy})
	idle, said := in(wire.Auto, None), in(wire.Manual, None)
	idle.Mic.Open, idle.Ear, idle.Said = false, Resting, nil
	said.Mic.Open, said.Said = false, nil
	return []string{"idle", "all was said", "last reply", "turned away", "button held", "farewell"}, []State{
		idle, said, led(in(wire.Auto, Speaking), Drain{errStops}), away,
		led(away, ListenStart{wire.Manual}), led(away, ListenStart{wire.Auto}, Ready{1}),
	}
}

// farewellDocument is the section of docs/turn.md about the end.
func farewellDocument() string {
	var b strings.Builder
	names, states := farewellColumns()
	b.WriteString(`
## The farewell

A server that stops sends drain: a reply that the device waits for is heard to its end, a listener is told by the
farewell, any other device is hung up on. Without capacity a conversation begins with its farewell, which waits 5 s for
the device to listen and 10 s for a button to be let go; nobody is listened to. The columns: a device that is **idle**;
one that has let its button go (**all was said**); the **last reply**, after drain; a device that is **turned away**, and
one whose **button is held**; the **farewell** is being said.

| event |`)
	for _, name := range names {
		fmt.Fprintf(&b, " %s |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(names)) + "\n")
	for _, r := range []struct {
		name string
		e    Event
	}{
		{"drain", Drain{errStops}},
		{"listen start", ListenStart{wire.Auto}},
		{"listen start, manual", ListenStart{wire.Manual}},
		{"listen stop", ListenStop{}},
		{"wake word", WakeWord{"hi"}},
		{"typed text", Typed{"what time is it"}},
		{"abort", Abort{}},
		{"finished", Finished{Turn: 1}},
		{"say at once, from outside", Interrupt{Announcement: 7, Lang: "en"}},
		{"stop, from outside", StopReply{}},
		{"tick after 10 s", Tick{}},
	} {
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, s := range states {
			seen := Seen{Now: epoch.Add(2 * time.Second)}
			if _, tick := r.e.(Tick); tick {
				seen.Now = epoch.Add(buttonTime)
			}
			fmt.Fprintf(&b, " %s |", cmp.Or(led(s, seen, r.e), "–"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestDrainCause: whatever ends a conversation that was asked to end, it hangs up
// with the cause it was given, and once.
func TestDrainCause(t *testing.T) {
	for _, e := range []Event{Finished{Turn: 1}, Finished{Turn: 1, HangUp: true}, Leave{ErrGoodbye}} {
		s, effects := rules().Next(in(wire.Auto, Speaking), Seen{Now: epoch}, Drain{errStops})
		if len(effects) != 0 {
			t.Errorf("a reply that is heard: %v", effects)
		}
		_, effects = rules().Next(s, Seen{Now: epoch}, e)
		if last := effects[len(effects)-1]; last != (HangUp{errStops}) {
			t.Errorf("%+v: %v", e, effects)
		}
	}
}

// TestFarewellRequest: the farewell is a phrase that needs no engine, in the
// language of the device, whatever was spoken last.
func TestFarewellRequest(t *testing.T) {
	drained := in(wire.Auto, None)
	drained.Learned.Lang = "zh"
	for phrase, c := range map[string]struct {
		from  State
		e     Event
		cause error
	}{
		prompts.ShuttingDown: {drained, Drain{errStops}, errStops},
		prompts.Overload:     {TurnedAway(epoch, Farewell{Phrase: prompts.Overload, Cause: errBusy}), ListenStart{wire.Realtime}, errBusy},
	} {
		_, effects := rules().Next(c.from, Seen{Now: epoch}, c.e)
		begin, ok := effects[len(effects)-1].(Begin)
		if r := begin.Request; !ok || r.Phrase != phrase || !r.Recorded || r.Lang != "en" || !errors.Is(r.Cause, c.cause) {
			t.Errorf("%s: %+v", phrase, effects)
		}
	}
}

// TestTurnedAwayTimes: a device that does nothing is let go without a word after
// 5 s; one that was woken or holds its button is told all the same.
func TestTurnedAwayTimes(t *testing.T) {
	for _, c := range []struct {
		does Event
		at   time.Duration
		want string
	}{
		{nil, 5 * time.Second, "HangUp"},
		{Abort{}, 5 * time.Second, "HangUp"},
		{ListenStart{wire.Manual}, 10 * time.Second, "Begin"},
		{WakeWord{"hi"}, 300 * time.Millisecond, "Begin"},
		{Typed{"hello"}, 300 * time.Millisecond, "Begin"},
	} {
		s := TurnedAway(epoch, Farewell{Phrase: prompts.Overload, Cause: errBusy})
		if c.does != nil {
			s, _ = rules().Next(s, Seen{Now: epoch}, c.does)
		}
		if at := s.Deadline().Sub(epoch); at != c.at {
			t.Errorf("%T: due after %v", c.does, at)
		}
		_, effects := rules().Next(s, Seen{Now: s.Deadline()}, Tick{})
		if !slices.ContainsFunc(effects, func(e Effect) bool { return strings.HasSuffix(fmt.Sprintf("%T", e), c.want) }) {
			t.Errorf("%T: %v", c.does, effects)
		}
	}
}

// TestTurnedAwayLateTick: of a device that has waited for long both limits may be
// over at one tick; after the hang-up nothing is begun.
func TestTurnedAwayLateTick(t *testing.T) {
	s := TurnedAway(epoch, Farewell{Phrase: prompts.Overload, Cause: errBusy})
	s.Due.Idle = epoch.Add(rules().IdleClose)
	s, _ = rules().Next(s, Seen{Now: s.Due.Idle.Add(-time.Second)}, ListenStart{wire.Manual})
	s, effects := rules().Next(s, Seen{Now: s.Due.Farewell.Add(time.Second)}, Tick{})
	if last := effects[len(effects)-1]; last != (HangUp{errBusy}) || s.Farewell.Step != Leaving {
		t.Errorf("%T is last of %v, %v", last, effects, s.Farewell)
	}
}
