package devicetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// Kind tells the kinds of events apart.
type Kind string

// The kinds of events.
const (
	KindReceived  Kind = "received"  // a text message from the server; Type, State, Text, Emotion, Raw
	KindSent      Kind = "sent"      // a text message to the server; Type, State, Text, Raw
	KindFrame     Kind = "frame"     // an Opus packet from the server; Size is its length
	KindState     Kind = "state"     // the device's state changed; State is the new one
	KindTool      Kind = "tool"      // a tool was run; Type is its name, Text its result or error
	KindViolation Kind = "violation" // Type is the rule, Text the detail
	KindReply     Kind = "reply"     // a reply is complete; Reply holds it
	KindClosed    Kind = "closed"    // the connection is gone; Text says how
)

// Event is one thing that happened on the wire or inside the device.
type Event struct {
	At      time.Time
	Kind    Kind
	Type    string
	State   string
	Text    string
	Emotion string
	Size    int         // bytes of the message
	Raw     []byte      // of text messages
	Reply   *Reply      // of KindReply
	Light   *LightReply // of the final that completes it
}

// EndsTools reports whether the device has just sent the last page of its tools.
func (e Event) EndsTools() bool {
	return e.Kind == KindSent && e.Type == "mcp" && bytes.Contains(e.Raw, []byte(`"tools":[`)) && !bytes.Contains(e.Raw, []byte(`"nextCursor"`))
}

// Stats are counters of one connection. Its fields are what a test or a load asks about afterwards.
type Stats struct {
	TextIn       int // text messages received
	FramesIn     int // Opus packets received
	TextOut      int
	FramesOut    int
	Dropped      int // packets that were not played: wrong state, no room, broken
	Flushed      int // packets thrown away by a change of state
	Underruns    int
	UnknownTypes int // messages of a type that the device does not know
	Unheard      int // frames that Say could not send because the microphone was off
	Replies      int
	Pings        int
	ToolCalls    int
	Crashes      int // by commands to things that were not exactly as they should be
}

// ErrClosed is returned when what was waited for cannot come any more.
var ErrClosed = errors.New("the device's connection is closed")

// Journal holds what happened on one connection, in order: its events, the
// breaches of the protocol and counters. All methods may be called at the same time.
type Journal struct {
	mu         sync.Mutex
	events     []Event
	violations []Violation
	stats      Stats
	changed    chan struct{} // closed and replaced at each new event
	cursor     int           // how far Wait has read
	replies    int           // how far WaitReply has read
	ended      bool
}

func newJournal() *Journal { return &Journal{changed: make(chan struct{})} }

// Events returns all events so far.
func (j *Journal) Events() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// Violations returns all breaches so far.
func (j *Journal) Violations() []Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.violations)
}

// Stats returns the counters so far.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// Watch gives every event, past and to come, until ctx or the connection ends.
func (j *Journal) Watch(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for i := 0; ; i++ {
			e, err := j.next(ctx, i)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Wait returns the first event that matches, among those after the one that Wait
// last returned. It fails when ctx or the connection ends first.
func (j *Journal) Wait(ctx context.Context, match func(Event) bool) (Event, error) {
	return j.wait(ctx, &j.cursor, match)
}

// WaitText waits, as [Journal.Wait] does, for a message of the given type, and state if that is not empty.
func (j *Journal) WaitText(ctx context.Context, kind, state string) (Event, error) {
	return j.Wait(ctx, func(e Event) bool {
		return e.Kind == KindReceived && e.Type == kind && (state == "" || e.State == state)
	})
}

// WaitReply returns the next complete reply, each one once.
func (j *Journal) WaitReply(ctx context.Context) (*Reply, error) {
	e, err := j.wait(ctx, &j.replies, func(e Event) bool { return e.Kind == KindReply })
	return e.Reply, err
}

func (j *Journal) count(change func(*Stats)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.stats)
}

func (j *Journal) add(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.addLocked(e)
}

func (j *Journal) addLocked(e Event) {
	j.events = append(j.events, e)
	j.wake()
}

// wake lets those go on that wait for a change. The caller holds mu.
func (j *Journal) wake() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *Journal) violate(at time.Time, rule Rule, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := Violation{At: at, Rule: rule, Detail: fmt.Sprintf(format, args...)}
	j.violations = append(j.violations, v)
	j.addLocked(Event{At: at, Kind: KindViolation, Type: string(rule), Text: v.Detail})
}

func (j *Journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.events)
}

// end marks that no event follows.
func (j *Journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	j.wake()
}

// next gives event i, waiting for it until ctx or the journal ends.
func (j *Journal) next(ctx context.Context, i int) (Event, error) {
	for {
		j.mu.Lock()
		changed, ended := j.changed, j.ended
		if i < len(j.events) {
			e := j.events[i]
			j.mu.Unlock()
			return e, nil
		}
		j.mu.Unlock()
		if ended {
			return Event{}, ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// wait finds the first event from *cursor on that matches, and moves the cursor behind it.
func (j *Journal) wait(ctx context.Context, cursor *int, match func(Event) bool) (Event, error) {
	j.mu.Lock()
	i := *cursor
	j.mu.Unlock()
	for {
		e, err := j.next(ctx, i)
		if err != nil {
			return Event{}, err
		}
		i++
		if match(e) {
			j.mu.Lock()
			*cursor = max(*cursor, i)
			j.mu.Unlock()
			return e, nil
		}
	}
}
