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

// letterBody holds the text of a letter and how it is told, as JSON.
type letterBody struct {
	Text string    `json:"text"`
	Lang text.Lang `json:"lang,omitempty"`
	Now  bool      `json:"now,omitempty"`
}

// letterStates are the fates as rows have them.
func letterStates() map[mail.Fate]string {
	return map[mail.Fate]string{mail.Queued: "waiting", mail.Delivered: "telling", mail.Heard: "heard", mail.Expired: "expired", mail.Refused: "cancelled"}
}

// Add implements [mail.Store].
func (s Stored) Add(ctx context.Context, l mail.Letter, most int) error {
	open, err := s.table.Open(ctx, l.Device)
	if err != nil {
		return err
	}
	if open >= most {
		return mail.ErrFull
	}
	body, err := json.Marshal(letterBody{l.Text, l.Lang, l.Now})
	if err != nil {
		return err
	}
	err = s.table.Add(ctx, store.Parcel{
		ID: l.ID, DeviceID: l.Device, Body: string(body), Source: l.Source, EndsAt: l.Ends, State: letterStates()[l.Fate], ByID: l.By, At: l.Made,
	})
	if errors.Is(err, store.ErrNotFound) {
		return mail.ErrNoDevice
	}
	return err
}

// Get implements [mail.Store].
func (s Stored) Get(ctx context.Context, id string) (mail.Letter, error) {
	p, err := s.table.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		err = mail.ErrNoLetter
	}
	if err != nil {
		return mail.Letter{}, err
	}
	return letterOf(p)
}

// Last implements [mail.Store].
func (s Stored) Last(ctx context.Context, device string, limit int) ([]mail.Letter, error) {
	rows, err := s.table.List(ctx, device, store.Page{Limit: limit})
	all := make([]mail.Letter, 0, len(rows))
	for _, row := range rows {
		l, broken := letterOf(row)
		err = errors.Join(err, broken)
		all = append(all, l)
	}
	return all, err
}

// First implements [mail.Store].
func (s Stored) First(ctx context.Context, device string) (mail.Letter, error) {
	waiting, err := s.table.Waiting(ctx, device, 1)
	if err == nil && len(waiting) == 0 {
		err = mail.ErrNoLetter
	}
	if err != nil {
		return mail.Letter{}, err
	}
	return letterOf(waiting[0])
}

// letterOf reads a row.
func letterOf(p store.Parcel) (mail.Letter, error) {
	var b letterBody
	if err := json.Unmarshal([]byte(p.Body), &b); err != nil {
		return mail.Letter{}, err
	}
	l := mail.Letter{
		ID: p.ID, Device: p.DeviceID, Text: b.Text, Lang: b.Lang, Now: b.Now, Source: p.Source, By: p.ByID, Heard: p.HeardChars, Tries: p.Tries,
		Made: p.At, Ends: p.EndsAt, NotBefore: p.NotBefore, Told: p.DeliveredAt,
	}
	for fate, state := range letterStates() {
		if state == p.State {
			l.Fate = fate
		}
	}
	if l.Fate == mail.Queued && !l.Ends.IsZero() && !time.Now().Before(l.Ends) {
		l.Fate = mail.Expired
	}
	return l, nil
}

// Change implements [mail.Store].
func (s Stored) Change(ctx context.Context, was, now mail.Letter) (bool, error) {
	states := letterStates()
	err := s.table.Change(ctx, store.Parcel{ID: was.ID, State: states[was.Fate], Tries: was.Tries}, store.Parcel{
		NotBefore: now.NotBefore, EndsAt: now.Ends, State: states[now.Fate], Tries: now.Tries, DeliveredAt: now.Told, HeardChars: now.Heard,
	})
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// Prolong implements [mail.Store].
func (s Stored) Prolong(ctx context.Context, least time.Duration, until time.Time) error {
	_, err := s.table.Prolong(ctx, least, until)
	return err
}

// Tidy implements [mail.Store].
func (s Stored) Tidy(ctx context.Context, before time.Time) error {
	if _, err := s.table.Expire(ctx); err != nil {
		return err
	}
	_, err := s.table.Purge(ctx, before)
	return err
}
