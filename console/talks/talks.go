// Package talks is what people do with what was said: they look for talks, hear them, rate and keep them, take them out and
// delete them. Members have the talks of their own devices, owners all.
//
// # Sound
//
// A side of a turn is given as it is kept, Ogg Opus, or as WAV; both sides together as WAV of two channels on one clock, the
// user on the left. At most two requests decode sound at the same time; others wait.
//
// # Concurrency
//
// All methods may be called at the same time.
package talks

import (
	"context"
	"net/http"
	"os"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

// Guard keeps the audit and answers for failures. [access.Guard] implements it.
type Guard interface {
	// Did keeps in the audit what the one who asks has done to an object.
	Did(r *http.Request, act, object string, outcome error)
	// Fail answers for an error that is not for the one who asks.
	Fail(w http.ResponseWriter, r *http.Request, err error)
}

// Sound is the folder of recordings. [recording.Recorder] implements it.
type Sound interface {
	// Open opens a file as its row names it; [fs.ErrNotExist] if it is not there.
	Open(path string) (*os.File, error)
	// Remove deletes the recordings of a turn, or of all of a talk for "".
	Remove(ctx context.Context, device, talk, turn string) error
}

// Options make a [Talks]. All but Days and Zone must be set.
type Options struct {
	Store *store.Store
	Sound Sound
	Guard Guard
	Days  func() int // for how long sound is kept
	// Erased is told that something of the talks of a device was deleted: what was learned from it goes with it; nil: nobody is told.
	Erased func(deviceID string)
	Zone   func() *time.Location // of days and times; nil: UTC
}

// Talks gives people what was said.
type Talks struct {
	Bin *Bin // of pages

	o       Options
	decodes chan struct{}                 // one for each that decodes sound
	heard   *lru.Cache[string, time.Time] // who has heard whose turn, and when that was put into the audit
}

const (
	maxDecodes = 2
	maxHeard   = 1024             // of which it is remembered that they are in the audit
	heardFor   = 10 * time.Minute // after that it is written again
)

// New returns what was said, of a store.
func New(o Options) *Talks {
	if o.Zone == nil {
		o.Zone = func() *time.Location { return time.UTC }
	}
	t := &Talks{o: o, decodes: make(chan struct{}, maxDecodes), heard: lru.New[string, time.Time](maxHeard, 0)}
	t.Bin = &Bin{talks: t, all: map[string]*waste{}}
	return t
}

// ownerOf is the owner whose talks a person may see; "": all.
func ownerOf(p account.Person) string {
	if p.Role == account.Owner {
		return ""
	}
	return p.ID
}

// List lists the talks that a person may see, the newest first. A viewer sees none: [account.ErrForbidden].
func (t *Talks) List(ctx context.Context, p account.Person, f store.TalkFilter, page store.Page) (store.TalkList, error) {
	owner := ownerOf(p)
	if p.Role == account.Viewer || owner == "" && p.Role != account.Owner {
		return store.TalkList{}, account.ErrForbidden
	}
	if owner != "" {
		f.Owner = owner
	}
	return t.o.Store.Talks.List(ctx, f, page)
}

// Day holds the talks of one day in the zone of the server.
type Day struct {
	Date  time.Time
	Talks []store.Talk
}

// Days groups a list by days, without changing its order.
func (t *Talks) Days(all []store.Talk) (days []Day) {
	zone := t.o.Zone()
	for i := range all {
		at := all[i].BeganAt.In(zone)
		date := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, zone)
		if len(days) == 0 || !days[len(days)-1].Date.Equal(date) {
			days = append(days, Day{Date: date})
		}
		last := &days[len(days)-1]
		last.Talks = append(last.Talks, all[i])
	}
	return days
}

// Turn is a turn with all that belongs to it.
type Turn struct {
	store.Turn

	Messages   []store.Message
	Calls      []store.Call
	Recordings []store.Recording
}

// Side returns the recording of a side of the turn that can be heard now.
func (t *Turn) Side(side string, now time.Time) (store.Recording, bool) {
	for _, r := range t.Recordings {
		if r.Side == side && r.EndsAt.After(now) {
			return r, true
		}
	}
	return store.Recording{}, false
}

// Talk is a talk with some of its turns.
type Talk struct {
	store.Talk

	Turns []Turn
	More  bool // there are turns after these
}

// maxTurns is how many turns of a talk are read at once.
const maxTurns = 100

// Talk returns a talk with its turns after seq, a hundred at most. Whether a person may see it is the matter of the route: see
// [Talks.OwnerOfTalk]. [store.ErrNotFound]: there is none.
func (t *Talks) Talk(ctx context.Context, id string, seq int) (talk Talk, err error) {
	if talk.Talk, err = t.o.Store.Talks.Get(ctx, id); err != nil {
		return talk, err
	}
	turns, err := t.o.Store.Turns.Of(ctx, id, seq, maxTurns)
	if err != nil {
		return talk, err
	}
	with, err := t.o.Store.Talks.With(ctx, id, seq, maxTurns)
	if err != nil {
		return talk, err
	}
	for i := range turns {
		one := &turns[i]
		talk.Turns = append(talk.Turns, Turn{*one, with.Messages[one.ID], with.Calls[one.ID], with.Recordings[one.ID]})
	}
	talk.More = len(turns) == maxTurns
	return talk, nil
}

// Turn returns a turn with all that belongs to it, and its talk.
func (t *Talks) Turn(ctx context.Context, id string) (turn Turn, talk store.Talk, err error) {
	if talk, err = t.o.Store.Talks.OfTurn(ctx, id); err != nil {
		return turn, talk, err
	}
	if turn.Turn, turn.Messages, turn.Calls, err = t.o.Store.Turns.Get(ctx, id); err == nil {
		turn.Recordings, err = t.o.Store.Recordings.Of(ctx, id)
	}
	return turn, talk, err
}

// OwnerOfTalk returns whose the device is with which the talk of a request was held, for routes with {talk}.
func (t *Talks) OwnerOfTalk(r *http.Request) (string, error) {
	return t.OwnerOf(r.Context(), r.PathValue("talk"))
}

// OwnerOf returns whose the device is with which a talk was held.
func (t *Talks) OwnerOf(ctx context.Context, talkID string) (string, error) {
	talk, err := t.o.Store.Talks.Get(ctx, talkID)
	return talk.OwnerID, Unknown(err)
}

// OwnerOfTurn returns whose the device is of which the turn of a request is, for routes with {turn}.
func (t *Talks) OwnerOfTurn(r *http.Request) (string, error) {
	talk, err := t.o.Store.Talks.OfTurn(r.Context(), r.PathValue("turn"))
	return talk.OwnerID, Unknown(err)
}

// Rate keeps what somebody thinks of a turn: -1, 0 or 1.
func (t *Talks) Rate(ctx context.Context, turnID string, rating int) error {
	return t.o.Store.Turns.Rate(ctx, turnID, max(-1, min(rating, 1)))
}

// Keep says whether a talk stays when others of its age are deleted.
func (t *Talks) Keep(ctx context.Context, talkID string, keep bool) error {
	return t.o.Store.Conversations.Keep(ctx, talkID, keep)
}

// DeleteTalk deletes a talk with its sound, which the audit keeps.
func (t *Talks) DeleteTalk(r *http.Request, talkID string) error {
	talk, err := t.o.Store.Talks.Get(r.Context(), talkID)
	if err == nil {
		err = t.o.Store.DeleteTalk(r.Context(), talkID)
	}
	if err == nil {
		t.erased(talk.DeviceID)
		err = t.o.Sound.Remove(r.Context(), talk.DeviceID, talkID, "")
	}
	t.o.Guard.Did(r, "talk.delete", talkID, err)
	return err
}

// DeleteTurn deletes a turn with its sound, which the audit keeps. A talk without turns goes with its last one.
func (t *Talks) DeleteTurn(r *http.Request, turnID string) error {
	talk, err := t.o.Store.Talks.OfTurn(r.Context(), turnID)
	if err == nil {
		err = t.o.Store.DeleteTurn(r.Context(), turnID)
	}
	if err == nil {
		t.erased(talk.DeviceID)
		err = t.o.Sound.Remove(r.Context(), talk.DeviceID, talk.ID, turnID)
	}
	t.o.Guard.Did(r, "turn.delete", turnID, err)
	return err
}

func (t *Talks) erased(deviceID string) {
	if t.o.Erased != nil {
		t.o.Erased(deviceID)
	}
}

// NoSound says why a turn has no sound that could be heard; "": it has some.
func (t *Talks) NoSound(turn *Turn, lang text.Lang) string {
	now := time.Now()
	for _, r := range turn.Recordings {
		if r.EndsAt.After(now) {
			return ""
		}
	}
	days := 0
	if t.o.Days != nil {
		days = t.o.Days()
	}
	for _, r := range turn.Recordings {
		return message.In(lang, "talks/sound-ended", t.date(r.EndsAt))
	}
	if now.Sub(turn.At) < time.Duration(days)*24*time.Hour { // it would be here still
		return message.In(lang, "talks/not-recorded", t.date(turn.At))
	}
	return message.In(lang, "talks/no-sound", t.date(turn.At), days)
}

func (t *Talks) date(at time.Time) string { return at.In(t.o.Zone()).Format("2006-01-02") }
