// Package contact watches how a device comes into contact with the server, in twelve steps from its first question to the
// end of a reply, and says at the first step that is missing what it may be due to. It keeps no words that were said.
package contact

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one of the steps of a contact, in their order.
type Step int

// The steps.
const (
	Asked      Step = iota // it asks where to connect (OTA)
	Answered               // with an address that it can reach
	Polled                 // it asks whether it was accepted, while it must be paired
	Connecting             // it asks for a socket
	Token                  // it shows who it is
	Hello                  // the first message on the socket
	Tools                  // the list of its tools
	Sound                  // the first packet of its microphone
	Voice                  // somebody speaks in it
	Words                  // what was said
	Reply                  // the first frame of the reply
	Played                 // the reply to its end
	stepCount
)

// Steps lists all steps in their order.
func Steps() []Step {
	all := make([]Step, stepCount)
	for i := range all {
		all[i] = Step(i)
	}
	return all
}

// String returns the step's stable name.
func (s Step) String() string {
	return [...]string{"ota", "answer", "activation", "socket", "token", "hello", "tools", "sound", "voice", "words", "reply", "played"}[s]
}

// ParseStep returns the step of a name.
func ParseStep(name string) (s Step, ok bool) {
	i := slices.IndexFunc(Steps(), func(s Step) bool { return s.String() == name })
	return Step(max(i, 0)), i >= 0
}

// StepNames lists the names of all steps.
func StepNames() (all []string) {
	for _, s := range Steps() {
		all = append(all, s.String())
	}
	return all
}

// State says how far a step is.
type State int

// The states.
const (
	Missing  State = iota // it has not come yet
	Reached               // it has
	Failed                // it has come, and went wrong
	Unneeded              // it is not needed, or was passed over
)

// String returns the state's stable name.
func (s State) String() string { return [...]string{"missing", "reached", "failed", "unneeded"}[s] }

// MarshalText writes the stable name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it.
func (s *State) UnmarshalText(name []byte) error {
	for *s = Missing; *s <= Unneeded; *s++ {
		if s.String() == string(name) {
			return nil
		}
	}
	return fmt.Errorf("no state of a step: %.20q", name)
}

// mark tells how a step went.
type mark struct {
	state State
	at    time.Time
	from  string // address of the device
	note  Why    // why it went wrong, or what else is to be said
	raw   string // what was sent, without secrets; "": it is not kept
}

// marks are the steps of one contact.
type marks [stepCount]mark

// reach notes that a step has come. What is missing before it was passed over, but tools that are still being read.
func (m *marks) reach(s Step, at time.Time, from string, note Why) {
	m.pass(s)
	m[s] = mark{Reached, at, from, note, m[s].raw}
}

// pass notes that what is missing before a step is not needed any more.
func (m *marks) pass(s Step) {
	for before := range s {
		if m[before].state == Missing && before != Tools {
			m[before].state = Unneeded
		}
	}
}

// fail notes that a step has come and went wrong.
func (m *marks) fail(s Step, at time.Time, from string, why Why) {
	m.reach(s, at, from, why)
	m[s].state = Failed
}

// skip notes that a step is not needed.
func (m *marks) skip(s Step, note Why) { m[s] = mark{state: Unneeded, note: note} }

// restart forgets a step and all after it.
func (m *marks) restart(from Step) { clear(m[from:]) }

// refusal returns why the device was not let in when it came last, and when; an empty one: it was, or did not come.
func (m *marks) refusal() (why Why, at time.Time) {
	for _, s := range m {
		if s.state == Failed && strings.Contains(s.note.ID, "/refused-") {
			return s.note, s.at
		}
	}
	return Why{}, time.Time{}
}

// open returns the step to look at: the first that is missing or went wrong. False: there is none.
func (m *marks) open() (Step, bool) {
	for s := range m {
		if m[s].state == Missing || m[s].state == Failed {
			return Step(s), true
		}
	}
	return 0, false
}
