package alarm

import (
	"time"

	"xiaozhi/internal/recur"
	"xiaozhi/internal/text"
)

// Reminder is something that a device is to be told at a time. It is a value: what
// becomes of it is decided by [Reminder.Next].
type Reminder struct {
	ID     string // unique; made by the [Book]
	Device string // key of the device that it belongs to
	Kind   Kind
	State  State
	Text   string        // what to tell; "" for a bare timer
	Lang   text.Lang     // in which it is told
	Due    time.Time     // when it rings, to the millisecond
	Length time.Duration // of a timer, as it was asked for
	Wall   string        // of an alert: what the clocks of Zone show when it recurs or is due, as in [recur.Layout]
	Zone   string        // of an alert: the IANA name of its time zone
	Rule   string        // of an alert: how it recurs, as RFC 5545 writes it, without DTSTART; "": once
	Rang   time.Time     // when telling it began; zero: not yet, or nothing of it was heard
}

// Kind tells what makes a reminder due.
type Kind string

// The kinds of reminders.
const (
	Timer Kind = "timer" // a length of time has passed, whatever a clock that is set says
	Alert Kind = "alert" // it is that time of day in its zone
)

// State names a stage in the life of a reminder.
type State string

// The states of a reminder.
const (
	Armed   State = "armed"   // it waits for its time
	Snoozed State = "snoozed" // it waits for the time to which it was put off
	Ringing State = "ringing" // it is being told, or waits for a pause
	Missed  State = "missed"  // its time has passed, and nothing of it was heard: it is told at the next contact
	Told    State = "told"    // it is over
	Deleted State = "deleted" // it was given up
)

// waiting are the states in which a reminder is still to come.
func waiting() []State { return []State{Armed, Snoozed} }

// Open reports whether a reminder is not over.
func (s State) Open() bool { return s != Told && s != Deleted }

// Event names something that changes the State of a reminder.
type Event int

// The events.
const (
	Came      Event = iota // its time has come, and its device is connected
	Absent                 // its time has come, and its device is not connected
	Heard                  // it was told
	Lost                   // the connection ended before anything of it was heard
	Restarted              // the program has ended while it was ringing
	Met                    // its device is connected again
	Snooze                 // it was put off
	Move                   // its time was changed
	Delete                 // it was given up
)

// Next returns what becomes of a reminder by an event at now. ok is false for an
// event that means nothing in its state. Of Snooze and Move, Due is for the caller to set.
//
// What a crash interrupts while it rings is told once more as missed. Since nobody
// knows whether that was heard, the second telling is taken for done when it begins.
func (r Reminder) Next(e Event, now time.Time) (next Reminder, ok bool) {
	waits := r.State == Armed || r.State == Snoozed
	switch {
	case e == Delete && r.State.Open():
		r.State = Deleted
	case e == Snooze && r.State != Deleted:
		r.State, r.Rang = Snoozed, time.Time{}
	case e == Move && r.State.Open():
		r.State, r.Rang = Armed, time.Time{}
	case waits && e == Came, r.State == Missed && e == Met && r.Rang.IsZero():
		r.State, r.Rang = Ringing, now
	case waits && e == Absent, r.State == Ringing && e == Lost:
		r.State, r.Rang = Missed, time.Time{}
	case r.State == Ringing && e == Restarted:
		r.State = Missed
	case r.State == Ringing && e == Heard, r.State == Missed && e == Met:
		return r.over(now), true
	default:
		return r, false
	}
	return r, true
}

// over returns a reminder that has been told: it waits for the next time, if it recurs.
func (r Reminder) over(now time.Time) Reminder {
	if next, ok := r.following(later(now, r.Due)); ok { // the clock may have been set back since it was due
		next.State = Armed
		return next
	}
	r.State = Told
	return r
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// times returns when a reminder recurs.
func (r Reminder) times() recur.Times { return recur.Times{Rule: r.Rule, Wall: r.Wall, Zone: r.Zone} }

// following returns the reminder at the first time after now at which it recurs. ok
// is false if there is none.
func (r Reminder) following(now time.Time) (next Reminder, ok bool) {
	times, due, ok := r.times().Next(now)
	if ok {
		r.Wall, r.Due = times.Wall, due
	}
	return r, ok
}

// latest returns a reminder that is due at the last of its times up to now, and how
// many of them there are, 1000 at most.
func (r Reminder) latest(now time.Time) (Reminder, int) {
	if r.State == Snoozed { // it was put off over its own times
		return r, 1
	}
	times, due, n := r.times().Latest(r.Due, now)
	r.Wall, r.Due = times.Wall, due
	return r, n
}
