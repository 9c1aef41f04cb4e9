// Package fleet says what each device does: what it says now, or when it was there last, or why it is not let in.
package fleet

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/contact"
)

// State says what a device does.
type State string

// The states, those of a connected device first.
const (
	Speaking  State = "speaking"
	Listening State = "listening"
	Thinking  State = "thinking"
	Idle      State = "idle"    // connected, and nothing goes on
	Asleep    State = "asleep"  // not connected, as firmware is unless it talks; it has talked before
	Started   State = "started" // it has asked where to connect, and never talked
	Waiting   State = "waiting" // for a person to accept its code
	Refused   State = "refused"
)

// States lists all states.
func States() []State {
	return []State{Speaking, Listening, Thinking, Idle, Asleep, Started, Waiting, Refused}
}

// Connected reports whether a device in this state holds a conversation.
func (s State) Connected() bool { return s == Speaking || s == Listening || s == Thinking || s == Idle }

// Device describes a device as it is now.
type Device struct {
	ID       string
	Name     string // as people call it; "": nobody has named it
	Board    string
	Firmware string
	Agent    string // whom it talks to
	Owner    string // id of an account; "": nobody's
	From     string // address it was last seen at
	Known    bool   // a person has accepted it, or it was the first
	Browser  bool   // it is a page
	State    State
	Since    time.Time // it is in this state; zero: nobody knows
	First    time.Time // it was seen
	Seen     time.Time // last
	Talked   time.Time // last turn; zero: never, or nothing is kept
	Code     string    // with which it waits
	Why      contact.Why
}

// Detail has what is kept of a device beside who it is.
type Detail struct {
	Owner  string // id of an account
	Talked time.Time
}

// Sources tell what the parts of the server know of devices. They may be called at the same time.
type Sources struct {
	Known    func() []identity.Known
	Contacts func() []contact.Head
	Named    func(id string) string                               // by the settings or by people
	Agent    func(id string) string                               // whom it talks to
	Details  func(ctx context.Context) (map[string]Detail, error) // of all devices, by id
}

// Fleet joins them with the conversations that are held now. Its methods may be called at the same time.
type Fleet struct {
	from Sources
	now  func() time.Time

	mu        sync.Mutex
	talks     map[string]*Talk
	talked    map[string]time.Time // last end of a talk since the start
	followers map[int]func(id string)
	next      int
}

// New returns a fleet without sources, which SetSources gives it before it is asked.
func New() *Fleet {
	return &Fleet{now: time.Now, talks: map[string]*Talk{}, talked: map[string]time.Time{}, followers: map[int]func(string){}}
}

// SetSources must be called before anything is asked.
func (f *Fleet) SetSources(s Sources) { f.from = s }

// Follow has follow called with the id of each device whose state has changed, until stop is called. It must not wait.
func (f *Fleet) Follow(follow func(id string)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.next
	f.next++
	f.followers[n] = follow
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers, n)
	}
}

// Changed tells who follows that something else of a device is new.
func (f *Fleet) Changed(id string) {
	f.mu.Lock()
	all := make([]func(string), 0, len(f.followers))
	for _, follow := range f.followers {
		all = append(all, follow)
	}
	f.mu.Unlock()
	for _, follow := range all {
		follow(id)
	}
}

// Talk is a conversation that a device holds. Its methods may be called at the same time.
type Talk struct {
	fleet *Fleet
	id    string
	phase turn.Phase
	since time.Time
}

// Talk returns a conversation with a device, which begins by [Talk.Begin].
func (f *Fleet) Talk(id string) *Talk { return &Talk{fleet: f, id: id, since: f.now()} }

// Begin puts it in the place of another one with the device.
func (t *Talk) Begin() {
	f := t.fleet
	f.mu.Lock()
	t.since = f.now()
	f.talks[t.id] = t
	f.mu.Unlock()
	f.Changed(t.id)
}

// Phase notes what it does now.
func (t *Talk) Phase(p turn.Phase) {
	f := t.fleet
	f.mu.Lock()
	was := stateOf(t.phase)
	t.phase = p
	changed := stateOf(p) != was
	if changed {
		t.since = f.now()
	}
	f.mu.Unlock()
	if changed {
		f.Changed(t.id)
	}
}

// End notes that it is over, unless another one has taken its place.
func (t *Talk) End() {
	f := t.fleet
	f.mu.Lock()
	if f.talks[t.id] == t {
		delete(f.talks, t.id)
		f.talked[t.id] = f.now()
	}
	f.mu.Unlock()
	f.Changed(t.id)
}

// Forget drops what is remembered of a device that is not connected.
func (f *Fleet) Forget(id string) {
	f.mu.Lock()
	delete(f.talked, id)
	f.mu.Unlock()
	f.Changed(id)
}

// stateOf returns the state of a device in a phase of its conversation.
func stateOf(p turn.Phase) State {
	switch p {
	case turn.Listening:
		return Listening
	case turn.Recognizing, turn.Thinking:
		return Thinking
	case turn.Talking:
		return Speaking
	case turn.Idle, turn.Closed:
	}
	return Idle
}

// List returns all devices, the one that was seen first last.
func (f *Fleet) List(ctx context.Context) ([]Device, error) {
	details, err := f.from.Details(ctx)
	if err != nil {
		return nil, err
	}
	heads, known := f.from.Contacts(), f.from.Known()
	contacts := make(map[string]contact.Head, len(heads))
	for _, c := range heads {
		contacts[c.Device] = c
	}
	all := make([]Device, 0, len(known))
	for _, k := range known {
		all = append(all, f.join(k, contacts[k.ID], details[k.ID]))
		delete(contacts, k.ID)
	}
	for id, c := range contacts {
		if !contact.IsNameless(id) { // it calls, and there was no room or reason to remember it
			all = append(all, f.join(identity.Known{ID: id, Board: c.Board, Firmware: c.Firmware, First: c.First, Seen: c.Last, Remote: c.From}, c, details[id]))
		}
	}
	slices.SortFunc(all, func(a, b Device) int { return cmp.Or(b.First.Compare(a.First), strings.Compare(b.ID, a.ID)) })
	return all, nil
}

// Get returns one device. Not ok: nobody knows it.
func (f *Fleet) Get(ctx context.Context, id string) (d Device, ok bool, err error) {
	all, err := f.List(ctx)
	i := slices.IndexFunc(all, func(d Device) bool { return d.ID == id })
	if err != nil || i < 0 {
		return d, false, err
	}
	return all[i], true, nil
}

// join says what is known of one device.
func (f *Fleet) join(k identity.Known, c contact.Head, detail Detail) Device {
	d := Device{
		ID: k.ID, Name: cmp.Or(f.from.Named(k.ID), k.Name), Board: k.Board, Firmware: k.Firmware, Agent: f.from.Agent(k.ID), Owner: detail.Owner,
		From: cmp.Or(c.From, k.Remote), Known: k.State == identity.Paired.String() || k.State == identity.Browser.String(),
		Browser: k.State == identity.Browser.String(), First: k.First, Seen: k.Seen, Talked: detail.Talked, Code: k.Code,
	}
	if c.Last.After(d.Seen) {
		d.Seen = c.Last
	}
	f.mu.Lock()
	talk, talked := f.talks[k.ID], f.talked[k.ID]
	if talk != nil {
		d.State, d.Since = stateOf(talk.phase), talk.since
	}
	f.mu.Unlock()
	if talked.After(d.Talked) {
		d.Talked = talked
	}
	switch why, at := c.Why, c.Refused; {
	case d.State != "":
	case k.State == identity.Refused.String():
		d.State, d.Why = Refused, contact.Why{ID: "contact/refused-denied"}
	case d.Code != "":
		d.State, d.Since = Waiting, d.First
	case why.ID != "" && at.After(d.Talked):
		d.State, d.Since, d.Why = Refused, at, why
		if why.ID == "contact/refused-unpaired" { // its code has ended; it gets another one when it asks again
			d.State = Waiting
		}
	case !d.Talked.IsZero():
		d.State, d.Since = Asleep, d.Talked
	default:
		d.State, d.Since = Started, d.Seen
	}
	return d
}
