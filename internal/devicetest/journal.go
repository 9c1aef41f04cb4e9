package devicetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
)

// Kind says what an Event tells of.
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

// ErrClosed is returned when what was waited for cannot come any more.
var ErrClosed = errors.New("the device's connection is closed")

// journal keeps what happened, in order. All methods may be called at the same time.
type journal struct {
	mu         sync.Mutex
	events     []Event
	violations []Violation
	changed    chan struct{} // closed and replaced at each new event
	cursor     int           // how far wait has read
	replies    int           // how far waitReply has read
	ended      bool
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

func (j *journal) add(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.addLocked(e)
}

func (j *journal) addLocked(e Event) {
	j.events = append(j.events, e)
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) violate(at time.Time, rule Rule, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := Violation{At: at, Rule: rule, Detail: fmt.Sprintf(format, args...)}
	j.violations = append(j.violations, v)
	j.addLocked(Event{At: at, Kind: KindViolation, Type: string(rule), Text: v.Detail})
}

// len is how many events there are so far.
func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.events)
}

// end marks that no event follows.
func (j *journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	close(j.changed)
	j.changed = make(chan struct{})
}

// next gives event i, waiting for it until ctx or the journal ends.
func (j *journal) next(ctx context.Context, i int) (Event, error) {
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
func (j *journal) wait(ctx context.Context, cursor *int, match func(Event) bool) (Event, error) {
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

// all gives every event, past and to come, until the journal or ctx ends.
func (j *journal) all(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for i := 0; ; i++ {
			e, err := j.next(ctx, i)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}
