// Package letters keeps what devices are to be told in the store.
package letters

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/text"
	"xiaozhi/store"
)

// Stored keeps letters in the outbox of a store. Its methods may be called at any time.
type Stored struct{ table *store.Outbox }

var _ mail.Store = Stored{}

// New returns what keeps letters in a table.
func New(table *store.Outbox) Stored { return Stored{table} }

// letterBody holds what is told, as JSON.
type letterBody struct {
	Text   string    `json:"text"`
	Prompt string    `json:"prompt,omitempty"`
	Song   string    `json:"song,omitempty"`
	Lang   text.Lang `json:"lang,omitempty"`
}

// The states of rows.
const (
	held    = "held"
	waiting = "waiting"
	given   = "given"
	telling = "telling"
)

// fates are those that have one state each.
func fates() map[mail.Fate]string {
	return map[mail.Fate]string{mail.Heard: "heard", mail.Answered: "answered", mail.Expired: "expired", mail.Refused: "cancelled"}
}

// stateOf names the fate of a letter in a row.
func stateOf(l mail.Letter) string {
	switch {
	case l.Fate == mail.Queued && l.Held:
		return held
	case l.Fate == mail.Queued:
		return waiting
	case l.Fate == mail.Delivered && l.Begun:
		return telling
	case l.Fate == mail.Delivered:
		return given
	}
	return fates()[l.Fate]
}

// parcelOf writes a letter as a row.
func parcelOf(l mail.Letter) (store.Parcel, error) {
	body, err := json.Marshal(letterBody{l.Text, l.Prompt, l.Song, l.Lang})
	return store.Parcel{
		ID: l.ID, DeviceID: l.Device, Batch: l.Batch, Kind: string(l.Kind), Body: string(body), Source: l.Source, Key: l.Key, Rank: int(l.Priority), AtOnce: l.Now,
		DueAt: l.At, NotBefore: l.NotBefore, EndsAt: l.Ends, State: stateOf(l), Reason: string(l.Why), Tries: l.Tries, DeliveredAt: l.Told, HeardChars: l.Heard,
		Answer: l.Answer, ByID: l.By, At: l.Made,
	}, err
}

// letterOf reads a row.
func letterOf(p store.Parcel) (mail.Letter, error) {
	var b letterBody
	if err := json.Unmarshal([]byte(p.Body), &b); err != nil {
		return mail.Letter{}, err
	}
	l := mail.Letter{
		ID: p.ID, Batch: p.Batch, Device: p.DeviceID, Kind: mail.Kind(p.Kind), Text: b.Text, Prompt: b.Prompt, Song: b.Song, Lang: b.Lang, Now: p.AtOnce,
		Source: p.Source, By: p.ByID, Key: p.Key, Priority: mail.Priority(p.Rank), Why: mail.Why(p.Reason), Heard: p.HeardChars, Answer: p.Answer, Tries: p.Tries,
		Made: p.At, At: p.DueAt, Ends: p.EndsAt, NotBefore: p.NotBefore, Told: p.DeliveredAt,
	}
	switch p.State {
	case held, waiting:
		l.Fate, l.Held = mail.Queued, p.State == held
	case given, telling:
		l.Fate, l.Begun = mail.Delivered, p.State == telling
	}
	for fate, state := range fates() {
		if state == p.State {
			l.Fate = fate
		}
	}
	if l.Fate == mail.Queued && !l.Held && !l.Ends.IsZero() && !time.Now().Before(l.Ends) {
		l.Fate = mail.Expired
	}
	return l, nil
}

func lettersOf(rows []store.Parcel, err error) ([]mail.Letter, error) {
	all := make([]mail.Letter, 0, len(rows))
	for _, row := range rows {
		l, broken := letterOf(row)
		err = errors.Join(err, broken)
		all = append(all, l)
	}
	return all, err
}

// Add implements [mail.Store].
func (s Stored) Add(ctx context.Context, all []mail.Letter, most mail.Bounds) ([]error, error) {
	parcels := make([]store.Parcel, len(all))
	for i, l := range all {
		var err error
		if parcels[i], err = parcelOf(l); err != nil {
			return nil, err
		}
	}
	failed, err := s.table.Add(ctx, parcels, store.OutboxBounds(most))
	for i, why := range failed {
		for known, means := range map[error]error{store.ErrNotFound: mail.ErrNoDevice, store.ErrExists: mail.ErrTwice, store.ErrFull: mail.ErrFull} {
			if errors.Is(why, known) {
				failed[i] = means
			}
		}
	}
	return failed, err
}

// one is a row as a letter, or [mail.ErrNoLetter].
func one(p store.Parcel, err error) (mail.Letter, error) {
	if errors.Is(err, store.ErrNotFound) {
		err = mail.ErrNoLetter
	}
	if err != nil {
		return mail.Letter{}, err
	}
	return letterOf(p)
}

// Get implements [mail.Store].
func (s Stored) Get(ctx context.Context, id string) (mail.Letter, error) {
	return one(s.table.Get(ctx, id))
}

// List implements [mail.Store].
func (s Stored) List(ctx context.Context, f mail.Filter) ([]mail.Letter, error) {
	q := store.ParcelQuery{
		DeviceIDs: f.Devices, Batch: f.Batch, Page: store.Page{Limit: f.Limit, Before: store.Cursor(f.Before)},
		States: []string{waiting, given, telling, "heard", "answered", "expired", "cancelled"},
	}
	switch {
	case f.Open:
		q.States = q.States[:3]
	case f.Over:
		q.States = q.States[3:]
	}
	return lettersOf(s.table.List(ctx, q))
}

// First implements [mail.Store].
func (s Stored) First(ctx context.Context, p mail.Pick) (mail.Letter, error) {
	pick := store.ParcelPick{DeviceID: p.Device, Kinds: []string{string(mail.Say), string(mail.Ask)}, Pressing: p.Pressing, Fresh: time.Now().Add(-mail.FreshFor), Least: int(mail.Low)}
	if p.Loud {
		pick.Least = int(mail.Urgent)
	}
	if p.Songs {
		pick.Kinds, pick.Any = []string{string(mail.Play)}, true
	}
	return one(s.table.Next(ctx, pick))
}

// Due implements [mail.Store].
func (s Stored) Due(ctx context.Context, device string) (time.Time, mail.Priority, error) {
	at, rank, err := s.table.Due(ctx, device)
	return at, mail.Priority(rank), err
}

// Change implements [mail.Store].
func (s Stored) Change(ctx context.Context, was, now mail.Letter) (bool, error) {
	row, err := parcelOf(now)
	if err == nil {
		err = s.table.Change(ctx, store.Parcel{ID: was.ID, State: stateOf(was), Tries: was.Tries}, row)
	}
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// Prolong implements [mail.Store].
func (s Stored) Prolong(ctx context.Context, device string, least time.Duration, until time.Time) error {
	_, err := s.table.Prolong(ctx, device, least, until)
	return err
}

// Expire implements [mail.Store].
func (s Stored) Expire(ctx context.Context, limit int) ([]mail.Letter, error) {
	return lettersOf(s.table.Expire(ctx, limit))
}

// NextEnd implements [mail.Store].
func (s Stored) NextEnd(ctx context.Context) (time.Time, error) { return s.table.NextEnd(ctx) }

// Recover implements [mail.Store].
func (s Stored) Recover(ctx context.Context) (int, error) {
	lost, err := s.table.Recover(ctx)
	return int(lost), err
}

// Purge implements [mail.Store].
func (s Stored) Purge(ctx context.Context, before time.Time) error {
	_, err := s.table.Purge(ctx, before)
	return err
}
